//! What a script wants to be done with messages.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{json, Value};
use tokio::sync::Notify;

use crate::call::milliseconds;
use crate::lines::outcome;
use crate::{report_body, Call, Failure, Kit};

/// Does with the messages of one subscription what the script wants (`on_message`).
pub struct Subscription {
    kit: Kit,
    pub sub: String,
    pub target: String,
    plan: Value,
    /// Whatever the library has for the subscription.
    pub handle: Mutex<Option<Native>>,
    natives: Mutex<HashMap<String, Native>>,
    kept: Mutex<(u64, VecDeque<Value>)>, // how many came, and those that nobody has taken
    filled: Notify,
}

/// Something of the library's; `downcast` gives it back as what it is.
pub type Native = Arc<dyn Any + Send + Sync>;

impl Subscription {
    pub(crate) fn new(call: &Call) -> Self {
        Subscription {
            kit: call.kit.clone(),
            sub: call.text("sub").to_owned(),
            target: call.text("target").to_owned(),
            plan: call.args["on_message"].clone(),
            handle: Mutex::new(None),
            natives: Mutex::new(HashMap::new()),
            kept: Mutex::new((0, VecDeque::new())),
            filled: Notify::new(),
        }
    }

    /// Reports one message and does what the script wants; await it where the library hands messages over.
    /// `details` are the other members of the message: position, key, headers, redelivered, ts, meta.
    pub async fn deliver(&self, body: &[u8], details: Value) {
        self.deliver_native(report_body(body), None, details).await;
    }

    /// The same for a message of several parts.
    pub async fn deliver_parts(&self, parts: &[Vec<u8>], native: Option<Native>, details: Value) {
        let reported = parts.iter().map(|part| report_body(part)).collect();
        self.deliver_native(Value::Array(reported), native, details).await;
    }

    /// What the library needs to settle a message, by its ref. It is kept, as scripts may settle twice, except where
    /// `auto_settle` leaves the script nothing to settle.
    pub fn native(&self, reference: &str) -> Result<Native, Failure> {
        let found = self.natives.lock().unwrap().get(reference).cloned();
        found.ok_or_else(|| Failure::new("invalid", format!("no message {reference} to settle")))
    }

    /// The same for a message that is settled: `native` is what the library needs for it, `body` as it is reported.
    pub async fn deliver_native(&self, body: Value, native: Option<Native>, details: Value) {
        let (ordinal, reference) = self.report(body, native, details);
        let sleeps = self.plan["sleep_ms"].as_f64().filter(|ms| *ms > 0.0 && self.concerns("sleep_on", ordinal));
        if let Some(ms) = sleeps {
            if self.plan["block"].as_bool().unwrap_or(false) {
                std::thread::sleep(milliseconds(ms));
            } else {
                tokio::time::sleep(milliseconds(ms)).await;
            }
        }
        let mut wanted = self.plan["do"].as_array().cloned().unwrap_or_default();
        let takes_time = sleeps.is_some() || !wanted.is_empty();
        if self.plan["auto_settle"] == "ack" {
            wanted.push(json!({"op": "settle", "args": {"sub": self.sub, "ref": reference, "how": "ack"}}));
        }
        for (index, request) in wanted.iter().enumerate() {
            let call = Call::new(self.kit.clone(), request);
            let mut done = outcome(Box::pin(self.kit.attempt(call)).await);
            for (name, value) in [("sub", json!(self.sub)), ("ref", json!(reference)), ("index", json!(index))] {
                done[name] = value;
            }
            done["op"] = request["op"].clone();
            self.kit.emit("done", done);
        }
        if self.plan["auto_settle"] == "ack" {
            self.natives.lock().unwrap().remove(&reference);
        }
        if takes_time {
            self.kit.emit("returned", json!({"sub": self.sub, "ref": reference, "raised": false}));
        }
    }

    fn report(&self, body: Value, native: Option<Native>, details: Value) -> (u64, String) {
        let mut kept = self.kept.lock().unwrap();
        kept.0 += 1;
        let reference = self.kit.next_ref();
        if let Some(native) = native {
            self.natives.lock().unwrap().insert(reference.clone(), native);
        }
        let mut line = json!({"ref": reference, "sub": self.sub, "target": self.target, "body": body,
            "headers": {}, "redelivered": null, "ts": null, "position": null, "meta": {}});
        for (name, value) in details.as_object().into_iter().flatten() {
            line[name] = value.clone();
        }
        if self.plan["mode"] == "event" {
            self.kit.emit("message", line);
        } else {
            kept.1.push_back(line);
            self.filled.notify_waiters();
        }
        (kept.0, reference)
    }

    fn concerns(&self, list: &str, ordinal: u64) -> bool {
        self.plan[list].as_array().is_none_or(|ordinals| ordinals.contains(&json!(ordinal)))
    }

    /// Takes up to `max` messages: at once if there are any, else when one comes within the time.
    pub(crate) async fn take(&self, max: usize, wait: Duration) -> Vec<Value> {
        let filled = self.filled.notified();
        if self.kept.lock().unwrap().1.is_empty() {
            let _ = tokio::time::timeout(wait, filled).await; // what came until then counts in any case
        }
        let mut kept = self.kept.lock().unwrap();
        let count = max.min(kept.1.len());
        kept.1.drain(..count).collect()
    }
}
