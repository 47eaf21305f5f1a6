//! Sessions: an Environment and what was made with it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use fakebrokers_kit::{Answer, Call, Failure, Kit};
use rabbitmq_stream_client::{ClientOptions, Environment, TlsConfiguration};
use serde_json::{json, Value};
use tokio::sync::Notify;

use crate::consumer::Consumption;
use crate::errors;
use crate::publisher::Publisher;

pub struct Session {
    pub kit: Kit,
    pub name: String,
    pub environment: Environment,
    pub options: ClientOptions,
    pub listens: bool,
    pub ended: AtomicBool,
    pub publishers: Mutex<HashMap<[String; 4], Arc<Publisher>>>,
    pub consumers: Mutex<HashMap<String, Arc<Consumption>>>,
}

static SESSIONS: LazyLock<Mutex<HashMap<String, Arc<Session>>>> = LazyLock::new(Mutex::default);

pub fn of(call: &Call) -> Result<Arc<Session>, Failure> {
    let found = SESSIONS.lock().unwrap().get(call.text("session")).cloned();
    found.ok_or_else(|| Failure::new("closed", format!("no session {:?}", call.text("session"))).surely())
}

/// The session that has a subscription of that name.
pub fn of_subscription(sub: &str) -> Option<Arc<Consumption>> {
    let sessions = SESSIONS.lock().unwrap();
    let found = sessions.values().find_map(|session| session.consumers.lock().unwrap().get(sub).cloned());
    found
}

/// Part of reset.
pub fn forget_all() -> HashMap<String, Arc<Session>> {
    CONNECTING.lock().unwrap().clear();
    let sessions = std::mem::take(&mut *SESSIONS.lock().unwrap());
    for session in sessions.values() {
        session.ended.store(true, Ordering::Relaxed);
    }
    sessions
}

/// Those that are being connected: whoever connects may drop the future instead of waiting for it.
static CONNECTING: LazyLock<Mutex<HashMap<String, Arc<Notify>>>> = LazyLock::new(Mutex::default);

pub async fn connect(call: Call) -> Answer {
    let options = options(&call)?;
    let given_up = Arc::new(Notify::new());
    CONNECTING.lock().unwrap().insert(call.text("session").to_owned(), given_up.clone());
    let built = tokio::select! {
        built = Environment::from_client_option(options.clone()) => built.map_err(errors::client),
        () = given_up.notified() => Err(Failure::new("closed", "given up")),
    };
    CONNECTING.lock().unwrap().remove(call.text("session"));
    let environment = built?;
    let session = Session {
        kit: call.kit.clone(),
        name: call.text("session").to_owned(),
        environment,
        options,
        listens: call.option("listen").as_bool().unwrap_or(true),
        ended: AtomicBool::new(false),
        publishers: Mutex::default(),
        consumers: Mutex::default(),
    };
    SESSIONS.lock().unwrap().insert(session.name.clone(), Arc::new(session));
    Ok(json!({}))
}

fn options(call: &Call) -> Result<ClientOptions, Failure> {
    let (host, port) = host_port(call.endpoints()?[0])?;
    let text = |name: &str, otherwise: &str| call.option(name).as_str().unwrap_or(otherwise).to_owned();
    let mechanism = text("mechanism", "PLAIN");
    if mechanism != "PLAIN" {
        return Err(Failure::new("unsupported", format!("the library has no mechanism {mechanism}")));
    }
    let mut builder = ClientOptions::builder()
        .host(host)
        .port(port)
        .user(&text("user", "guest"))
        .password(&text("password", "guest"))
        .v_host(&text("vhost", "/"))
        .tls(tls(call.option("tls"))?);
    if let Some(frame_max) = call.option("frame_max").as_u64() {
        builder = builder.max_frame_size(frame_max as u32);
    }
    if let Some(seconds) = call.option("heartbeat_s").as_f64() {
        builder = builder.heartbeat(seconds as u32);
    }
    Ok(builder.build())
}

fn host_port(endpoint: &str) -> Result<(&str, u16), Failure> {
    let (host, port) = endpoint.rsplit_once(':').unwrap_or((endpoint, "5552"));
    let port = port.parse().map_err(|error| Failure::new("invalid", error))?;
    Ok((host.trim_start_matches('[').trim_end_matches(']'), port))
}

/// The library checks the name of the host that it connects to; it cannot be told another one.
fn tls(wanted: &Value) -> Result<TlsConfiguration, Failure> {
    if wanted.is_null() {
        return Ok(TlsConfiguration::Disabled);
    }
    let mut builder = TlsConfiguration::builder().enable(true);
    if let Some(file) = wanted["ca_file"].as_str() {
        builder = builder.add_root_certificates(file);
    }
    builder.build().map_err(|error| Failure::new("invalid", error))
}

/// An Environment holds no connection: it is open until it is closed, or the library has told of the end of all that was
/// made with it.
pub async fn state(call: Call) -> Answer {
    let open = of(&call).is_ok_and(|session| !session.ended.load(Ordering::Relaxed) && session.has_life());
    Ok(json!({"open": open, "pending": null}))
}

impl Session {
    fn has_life(&self) -> bool {
        let publishers: Vec<bool> = self.publishers.lock().unwrap().values().map(|each| each.is_open()).collect();
        let consumers: Vec<bool> = self.consumers.lock().unwrap().values().map(|each| each.is_open()).collect();
        let all = [publishers, consumers].concat();
        all.is_empty() || all.contains(&true)
    }
}

/// Closes what was made with the Environment, which itself has nothing to close.
pub async fn close(call: Call) -> Answer {
    if let Some(connecting) = CONNECTING.lock().unwrap().remove(call.text("session")) {
        connecting.notify_one();
        return Ok(json!({}));
    }
    let session = of(&call)?;
    session.ended.store(true, Ordering::Relaxed);
    let publishers: Vec<_> = session.publishers.lock().unwrap().drain().collect();
    let consumers: Vec<_> = session.consumers.lock().unwrap().drain().collect();
    let mut problem = Ok(json!({}));
    for (_, publisher) in publishers {
        problem = problem.and(publisher.close().await.map(|()| json!({})));
    }
    for (_, consumer) in consumers.into_iter().filter(|(_, consumer)| consumer.is_open()) {
        problem = problem.and(consumer.close().await.map(|()| json!({})));
    }
    SESSIONS.lock().unwrap().retain(|_, kept| !Arc::ptr_eq(kept, &session));
    problem
}
