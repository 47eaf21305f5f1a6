//! Bodies and numbers, as they stand in the lines.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use serde_json::{json, Value};
use sha2::{Digest, Sha256};

use crate::Failure;

const INLINE_BYTES_MAX: usize = 4096; // reports above this size are a digest
const EXACT_MAX: u64 = 1 << 53; // above it a number of JSON does not keep every digit everywhere

/// The bytes of a body, or of all parts of a list of bodies.
pub fn body_bytes(body: &Value) -> Result<Vec<u8>, Failure> {
    Ok(body_parts(body)?.concat())
}

/// The parts of a body: one, or those of a list.
pub fn body_parts(body: &Value) -> Result<Vec<Vec<u8>>, Failure> {
    match body {
        Value::Array(parts) => parts.iter().map(part).collect(),
        single => Ok(vec![part(single)?]),
    }
}

fn part(body: &Value) -> Result<Vec<u8>, Failure> {
    if let Some(text) = body["text"].as_str() {
        return Ok(text.as_bytes().to_vec());
    }
    if let Some(b64) = body["b64"].as_str() {
        return STANDARD.decode(b64).map_err(|error| Failure::new("invalid", error));
    }
    let size = body["len"].as_u64().unwrap_or(0) as usize;
    match body["gen"].as_str() {
        Some("zero") => Ok(vec![0; size]),
        Some("rand") => Ok(random_bytes(integer(&body["seed"]).unwrap_or(0), size)),
        _ => Err(Failure::new("invalid", "a body has text, b64 or gen zero|rand")),
    }
}

/// SHA-256 over the seed and a counter, both 8 bytes big-endian, for counter 0, 1, 2 ...
fn random_bytes(seed: u64, size: usize) -> Vec<u8> {
    let mut data = Vec::with_capacity(size + 32);
    for counter in 0u64.. {
        if data.len() >= size {
            break;
        }
        let block = [seed.to_be_bytes(), counter.to_be_bytes()].concat();
        data.extend_from_slice(&Sha256::digest(block));
    }
    data.truncate(size);
    data
}

/// How bytes are reported: base64 up to 4096 bytes, above that digest and length.
pub fn report_body(data: &[u8]) -> Value {
    if data.len() <= INLINE_BYTES_MAX {
        return json!({"b64": STANDARD.encode(data)});
    }
    let digest: String = Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({"sha256": digest, "len": data.len()})
}

/// How a key or a position is reported: text, or `{"b64"}` where it is none.
pub fn report_key(key: &[u8]) -> Value {
    match std::str::from_utf8(key) {
        Ok(text) => json!(text),
        Err(_) => json!({"b64": STANDARD.encode(key)}),
    }
}

/// A key or a position of a request as bytes: text, or a body; `None` without one.
pub fn key_bytes(key: &Value) -> Result<Option<Vec<u8>>, Failure> {
    match key {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.as_bytes().to_vec())),
        body => body_bytes(body).map(Some),
    }
}

/// How a number is reported: a string of digits where a number of JSON would not be exact.
pub fn number(value: u64) -> Value {
    if value > EXACT_MAX {
        json!(value.to_string())
    } else {
        json!(value)
    }
}

/// A number in either form.
pub(crate) fn integer(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
