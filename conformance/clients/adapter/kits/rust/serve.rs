//! Serving stdin and stdout.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::future::Future;
use std::io::BufRead;
use std::mem::ManuallyDrop;
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, FromRawFd, RawFd};
use std::process::exit;
use std::sync::atomic::AtomicU64;
use std::sync::{mpsc, Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::call::milliseconds;
use crate::lines::{Op, Shared};
use crate::order::Begin;
use crate::{body_parts, coverage, report_body, Answer, Call, Failure, Kit};

const VERSION: u64 = 1;
const OWN_BUG: i32 = 3; // exit code
const LOOKS: usize = 5; // of `stats`
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
const THREADS: usize = 4; // on every machine, so that what a library blocks shows everywhere

/// Serves requests; see the crate's first lines.
pub struct Adapter {
    facts: Value,
    ops: BTreeMap<String, Op>,
    clear: Box<dyn Fn() -> Box<dyn Any + Send>>,
}

impl Adapter {
    /// Knows hello, echo, next, stats, cancel, reset and shutdown. `facts` are what hello says besides.
    pub fn new(facts: Value) -> Self {
        let mut adapter = Adapter { facts, ops: BTreeMap::new(), clear: Box::new(|| Box::new(())) };
        adapter.op("hello", |call| async move { hello(&call) });
        adapter.op("echo", |call| async move { echo(&call.args["body"]) });
        adapter.op("next", next);
        adapter.op("stats", |_| stats());
        adapter.op("cancel", |call| async move { cancel(&call) });
        for carried_out_by_run in ["reset", "shutdown"] {
            adapter.op(carried_out_by_run, |_| async { Ok(json!({})) });
        }
        adapter
    }

    /// Adds an op. Only ops that were added are declared in the hello.
    pub fn op<F>(&mut self, name: &str, op: impl Fn(Call) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        self.ops.insert(name.to_owned(), Box::new(move |call| Box::pin(op(call))));
    }

    /// What reset does besides: give back what the adapter keeps (sessions, say), and it is dropped.
    pub fn clear<T: Send + 'static>(&mut self, take: impl Fn() -> T + 'static) {
        self.clear = Box::new(move || Box::new(take()));
    }

    /// Serves stdin and stdout until the end of the input or `shutdown`.
    pub fn run(self) -> ! {
        let kit = Kit(Arc::new(Shared {
            facts: completed(self.facts),
            ops: self.ops,
            open: Mutex::new(HashMap::new()),
            subs: Mutex::new(HashMap::new()),
            refs: AtomicU64::new(0),
            begun: Instant::now(),
            output: Mutex::new((own_stdout(), 0)),
        }));
        let mut runtime = new_runtime(THREADS);
        let answering = new_runtime(1); // apart, so that `stats` counts no task that only waits for the end of an op
        for line in std::io::stdin().lock().lines() {
            let request: Value = match line.map(|text| serde_json::from_str(&text)) {
                Ok(Ok(request)) => request,
                problem => {
                    eprintln!("not a request: {problem:?}");
                    exit(OWN_BUG);
                }
            };
            let call = Call::new(kit.clone(), &request);
            kit.0.open.lock().unwrap().insert(call.id, None);
            if matches!(call.op.as_str(), "reset" | "shutdown") {
                runtime = renewed(runtime, &kit, call.id);
                let_go((self.clear)());
                coverage::write();
                kit.answer(call.id, Ok(json!({})));
                if call.op == "shutdown" {
                    break;
                }
            } else {
                begin(&runtime, &answering, call);
            }
        }
        exit(0) // the sockets end with the process
    }
}

/// How many tasks there are. One whose end is under way counts for an instant, that of the op before this one too.
async fn stats() -> Answer {
    let mut tasks = usize::MAX;
    for _ in 0..LOOKS {
        tasks = tasks.min(Handle::current().metrics().num_alive_tasks());
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    Ok(json!({"tasks": tasks}))
}

/// Starts one request on a task of its own, and returns when it has begun. What waits for its end is on `answering`.
fn begin(runtime: &Runtime, answering: &Runtime, call: Call) {
    let (begun, wait) = mpsc::channel();
    let (kit, id) = (call.kit.clone(), call.id);
    let attempt = call.kit.clone();
    let work = runtime.spawn(Begin { work: Box::pin(async move { attempt.attempt(call).await }), begun: Some(begun) });
    if let Some(open) = kit.0.open.lock().unwrap().get_mut(&id) {
        *open = Some(work.abort_handle());
    }
    answering.spawn(async move {
        let answer = match work.await {
            Ok(answer) => answer,
            Err(ended) if ended.is_panic() => Err(Failure::new("internal", "the call panicked")), // stderr says where
            Err(_) => Err(Failure::new("cancelled", "")),
        };
        kit.answer(id, answer);
    });
    let _ = wait.recv(); // nothing is sent: it ends when the sender is dropped
}

/// Answers what is open with cancelled, and drops everything that the library has left, its tasks and sockets included.
fn renewed(old: Runtime, kit: &Kit, own: i64) -> Runtime {
    let open: Vec<i64> = kit.0.open.lock().unwrap().keys().copied().filter(|id| *id != own).collect();
    for id in open {
        kit.answer(id, Err(Failure::new("cancelled", "")));
    }
    kit.0.subs.lock().unwrap().clear();
    old.shutdown_background();
    shut_connections();
    new_runtime(THREADS)
}

/// Ends the connections that the library still holds behind its tasks, whoever that is.
fn shut_connections() {
    let open = std::fs::read_dir("/dev/fd").into_iter().flatten().flatten();
    let numbers: Vec<RawFd> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // SAFETY: it is only asked and shut, and never closed here
        let socket = ManuallyDrop::new(unsafe { TcpStream::from_raw_fd(number) });
        if socket.peer_addr().is_ok() {
            let _ = socket.shutdown(Shutdown::Both); // what is no connection of TCP has no such address
        }
    }
}

/// Drops on a thread of its own: what a library does when its objects are dropped may take its time.
fn let_go(things: Box<dyn Any + Send>) {
    std::thread::spawn(move || drop(things));
}

fn new_runtime(threads: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(threads).enable_all().build().expect("a runtime")
}

/// The real stdout for the lines; what the library prints goes to stderr from now on.
fn own_stdout() -> File {
    extern "C" {
        fn dup2(old: i32, new: i32) -> i32;
    }
    let lines = std::io::stdout().as_fd().try_clone_to_owned().expect("a stdout");
    // SAFETY: both are open, and nothing of this process owns either of them
    unsafe { dup2(2, 1) };
    File::from(lines)
}

fn completed(mut facts: Value) -> Value {
    for name in ["caps", "limits", "contract"] {
        if facts[name].is_null() {
            facts[name] = json!({});
        }
    }
    for (name, otherwise) in [("settles", json!("none")), ("restart", json!("never")), ("formats", json!([]))] {
        if facts[name].is_null() {
            facts[name] = otherwise;
        }
    }
    for capability in ["concurrent", "stats", "cancel"] {
        if facts["caps"][capability].is_null() {
            facts["caps"][capability] = json!(true);
        }
    }
    facts
}

fn hello(call: &Call) -> Answer {
    let facts = &call.kit.0.facts;
    let knows = facts["protocols"].as_array().is_some_and(|known| known.contains(&call.args["protocol"]));
    if call.integer("version") != Some(VERSION) || !knows {
        return Err(Failure::new("unsupported", format!("version 1 for {} only", facts["protocols"])));
    }
    let mut said = facts.clone();
    said["version"] = json!(VERSION);
    said["language"] = json!("rust");
    said["runtime"] = json!(env!("KIT_COMPILER"));
    said["ops"] = json!(call.kit.0.ops.keys().collect::<Vec<_>>());
    coverage::write();
    Ok(said)
}

fn echo(body: &Value) -> Answer {
    let parts: Vec<Value> = body_parts(body)?.iter().map(|part| report_body(part)).collect();
    Ok(json!({"body": if body.is_array() { json!(parts) } else { parts[0].clone() }}))
}

async fn next(call: Call) -> Answer {
    let subscription = call.kit.subscription(call.text("sub"))?;
    let wait = milliseconds(call.args["wait_ms"].as_f64().unwrap_or(0.0));
    Ok(json!({"messages": subscription.take(call.integer("max").unwrap_or(1) as usize, wait).await}))
}

/// Drops the future of a running request, as `tokio::time::timeout` and `select!` do.
fn cancel(call: &Call) -> Answer {
    let wanted = call.args["id"].as_i64().unwrap_or(0);
    if let Some(Some(work)) = call.kit.0.open.lock().unwrap().get(&wanted) {
        work.abort();
    }
    Ok(json!({}))
}

/// The version of a crate in the text of a `Cargo.lock`: `locked_version(include_str!("../Cargo.lock"), "mylib")`.
pub fn locked_version<'a>(lock: &'a str, name: &str) -> &'a str {
    let line = format!("name = \"{name}\"");
    let mut lines = lock.lines().skip_while(|found| *found != line).skip(1);
    lines.next().and_then(|found| found.split('"').nth(1)).unwrap_or("unknown")
}
