//! What goes to stdout, and what is open.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::{json, Value};
use tokio::task::AbortHandle;

use crate::{Answer, Call, Failure, Subscription};

pub(crate) type Work = Pin<Box<dyn Future<Output = Answer> + Send>>;
pub(crate) type Op = Box<dyn Fn(Call) -> Work + Send + Sync>;

/// What the ops of an adapter share; clones are the same one.
#[derive(Clone)]
pub struct Kit(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) ops: BTreeMap<String, Op>,
    pub(crate) facts: Value,
    pub(crate) open: Mutex<HashMap<i64, Option<AbortHandle>>>,
    pub(crate) subs: Mutex<HashMap<String, Arc<Subscription>>>,
    pub(crate) refs: AtomicU64,
    pub(crate) begun: Instant,
    pub(crate) output: Mutex<(File, u64)>, // and how many lines it has got
}

impl Kit {
    /// Writes an event line; from anywhere. `fields` is an object.
    pub fn emit(&self, event: &str, mut fields: Value) {
        fields["event"] = json!(event);
        self.write(fields);
    }

    /// A new message reference.
    pub fn next_ref(&self) -> String {
        format!("m{}", self.0.refs.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(crate) fn write(&self, mut line: Value) {
        let mut output = self.0.output.lock().unwrap();
        output.1 += 1;
        line["n"] = json!(output.1);
        line["t"] = json!(self.0.begun.elapsed().as_micros() as f64 / 1000.0);
        let text = format!("{line}\n");
        output.0.write_all(text.as_bytes()).expect("somebody reads the lines");
    }

    /// Carries out one op, whether it was asked for by a line or by a message.
    pub(crate) async fn attempt(&self, call: Call) -> Answer {
        match self.0.ops.get(&call.op) {
            Some(op) => op(call).await,
            None => Err(Failure::new("unsupported", format!("no op {:?}", call.op))),
        }
    }

    /// Answers a request, unless reset has done that already.
    pub(crate) fn answer(&self, id: i64, answer: Answer) {
        if self.0.open.lock().unwrap().remove(&id).is_some() {
            let mut line = outcome(answer);
            line["id"] = json!(id);
            self.write(line);
        }
    }

    /// Keeps a new subscription under its name. Messages may come before the library has said yes.
    pub fn subscribed(&self, call: &Call) -> Arc<Subscription> {
        let subscription = Arc::new(Subscription::new(call));
        self.0.subs.lock().unwrap().insert(call.text("sub").to_owned(), subscription.clone());
        subscription
    }

    /// The subscription of that name, or a failure (closed).
    pub fn subscription(&self, name: &str) -> Result<Arc<Subscription>, Failure> {
        let found = self.0.subs.lock().unwrap().get(name).cloned();
        found.ok_or_else(|| Failure::new("closed", format!("no subscription {name:?}")).surely())
    }
}

/// `ok` and `result`, or `error`.
pub(crate) fn outcome(answer: Answer) -> Value {
    match answer {
        Ok(result) => json!({"ok": true, "result": result}),
        Err(failure) => json!({"ok": false, "error": failure.report()}),
    }
}
