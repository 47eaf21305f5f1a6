//! One request.

use std::time::Duration;

use serde_json::Value;

use crate::body::integer;
use crate::{body_bytes, Failure, Kit};

/// One request; what `args` leaves out reads as nothing.
#[derive(Clone)]
pub struct Call {
    pub kit: Kit,
    pub id: i64,
    pub op: String,
    pub args: Value,
    /// `timeout_ms`, where the request has one.
    pub timeout: Option<Duration>,
}

impl Call {
    pub(crate) fn new(kit: Kit, request: &Value) -> Self {
        Call {
            kit,
            id: request["id"].as_i64().unwrap_or(0),
            op: request["op"].as_str().unwrap_or("").to_owned(),
            args: request.get("args").cloned().unwrap_or(Value::Null),
            timeout: request["timeout_ms"].as_f64().map(milliseconds),
        }
    }

    /// A member that is text; empty without it.
    pub fn text(&self, name: &str) -> &str {
        self.args[name].as_str().unwrap_or("")
    }

    /// A member that is an integer, in either of its forms.
    pub fn integer(&self, name: &str) -> Option<u64> {
        integer(&self.args[name])
    }

    /// Whether the answer waits for the outcome: yes, unless the request says no.
    pub fn waits(&self) -> bool {
        self.args["wait"].as_bool().unwrap_or(true)
    }

    /// The bytes of `body`.
    pub fn body(&self) -> Result<Vec<u8>, Failure> {
        body_bytes(&self.args["body"])
    }

    /// A member of `options`; null without it.
    pub fn option(&self, name: &str) -> &Value {
        &self.args["options"][name]
    }

    /// The list of `host:port`, at least one.
    pub fn endpoints(&self) -> Result<Vec<&str>, Failure> {
        let found: Vec<&str> =
            self.args["endpoints"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if found.is_empty() {
            return Err(Failure::new("invalid", "no endpoints"));
        }
        Ok(found)
    }
}

pub(crate) fn milliseconds(ms: f64) -> Duration {
    Duration::from_secs_f64(ms.max(0.0) / 1000.0)
}
