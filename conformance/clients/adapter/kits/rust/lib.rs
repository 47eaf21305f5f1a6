//! The adapter's side of the protocol of fakebrokers: everything but the library. The protocol is described in
//! ADAPTER.md of fakebrokers.
//!
//! ```no_run
//! use fakebrokers_kit::{Adapter, Answer, Call};
//! use serde_json::json;
//!
//! async fn connect(call: Call) -> Answer {
//!     println!("connecting to {}", call.endpoints()?[0]);
//!     Ok(json!({}))
//! }
//!
//! let mut adapter = Adapter::new(json!({"adapter": "mine", "library": "mylib", "protocols": ["rabbitmq-stream"]}));
//! adapter.op("connect", connect);
//! adapter.run();
//! ```
//!
//! An op is an async function: its `Ok` is the `result` object, its `Err` a [`Failure`]. It runs on a task of its own.
//! The ops begin in the order of the lines: what one does until it waits for the first time is done before the next
//! line is read. So hand over to the library before you wait for anything else, or queue at a `tokio::sync::Mutex`,
//! which lets its users in by the order in which they asked.

mod body;
mod call;
mod coverage;
mod failure;
mod lines;
mod order;
mod serve;
mod subscription;

pub use body::{body_bytes, body_parts, key_bytes, number, report_body, report_key};
pub use call::Call;
pub use failure::Failure;
pub use lines::Kit;
pub use order::first_step;
pub use serve::{locked_version, Adapter};
pub use subscription::{Native, Subscription};

/// What an op gives back: the `result` object, or how it did not work out.
pub type Answer = Result<serde_json::Value, Failure>;
