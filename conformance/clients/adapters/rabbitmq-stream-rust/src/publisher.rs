//! Producers and the messages that wait for their confirm.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use fakebrokers_kit::{body_bytes, first_step, number, Answer, Call, Failure};
use rabbitmq_stream_client::error::ProducerPublishError;
use rabbitmq_stream_client::types::{
    HashRoutingMurmurStrategy, Message, RoutingKeyRoutingStrategy, RoutingStrategy, SimpleValue, SuperStreamProducer,
};
use rabbitmq_stream_client::{ConfirmationStatus, Dedup, NoDedup, OnClosed, Producer};
use serde_json::{json, Value};
use tokio::sync::{oneshot, watch, Mutex};

use crate::errors;
use crate::filters;
use crate::session::{of, Session};

tokio::task_local! {
    /// The routing key of the message that is being sent: the library asks for it in the task that sends.
    static ROUTE: String;
}

fn route_of(_: &Message) -> String {
    ROUTE.get()
}

type Told = Result<ConfirmationStatus, ProducerPublishError>;

/// The library has a type for each: one with a name is lent to one caller at a time.
enum Line {
    Plain(Producer<NoDedup>),
    Named(Producer<Dedup>),
    Super(SuperStreamProducer<NoDedup>, String), // with the routing key of the message at hand
}

/// A Producer that is declared by whoever needs it first; the mutex lets the ops in by their order.
#[derive(Default)]
pub struct Publisher {
    line: Mutex<Option<Line>>,
    over: watch::Sender<bool>, // nothing will be told any more of what is open
    closing: watch::Sender<bool>, // nobody waits any more until it is declared
}

struct Closed {
    session: Arc<Session>,
    target: String,
    over: watch::Sender<bool>,
}

#[async_trait::async_trait]
impl OnClosed for Closed {
    async fn on_closed(&self, unconfirmed: Vec<Message>) {
        let known = self.over.send_replace(true) || self.session.ended.load(Ordering::Relaxed);
        if self.session.listens && !known {
            let text = format!("on_closed with {} unconfirmed messages", unconfirmed.len());
            self.session.kit.emit(
                "session",
                json!({"session": self.session.name, "what": "connection_lost",
                "text": text, "targets": [self.target]}),
            );
        }
    }
}

impl Session {
    fn publisher(&self, call: &Call) -> Arc<Publisher> {
        let mut publishers = self.publishers.lock().unwrap();
        publishers
            .entry(key_of(call))
            .or_insert_with(Arc::<Publisher>::default)
            .clone()
    }

    /// Lets the next op declare anew.
    fn forget(&self, call: &Call) -> Option<Arc<Publisher>> {
        self.publishers.lock().unwrap().remove(&key_of(call))
    }
}

/// Tells publishers apart.
fn key_of(call: &Call) -> [String; 4] {
    let by = call.args["routing"]["by"].as_str().unwrap_or_default();
    [call.text("target"), call.text("name"), by, if is_filtered(call) { "filtered" } else { "" }].map(str::to_owned)
}

fn is_filtered(call: &Call) -> bool {
    call.args["filtered"].as_bool().unwrap_or(false)
}

/// Makes the Producer of a kind.
async fn made(session: &Arc<Session>, call: &Call, closed: Closed) -> Result<Line, Failure> {
    let target = call.text("target");
    if let Some(by) = call.args["routing"]["by"].as_str() {
        let strategy = match by {
            "key" => RoutingStrategy::RoutingKeyStrategy(RoutingKeyRoutingStrategy { routing_extractor: &route_of }),
            _ => RoutingStrategy::HashRoutingStrategy(HashRoutingMurmurStrategy { routing_extractor: &route_of }),
        };
        let mut builder = session.environment.super_stream_producer(strategy);
        if is_filtered(call) {
            builder = builder.filter_value_extractor(filters::value_for);
        }
        let producer = builder.build(target).await.map_err(errors::producer_create)?;
        return Ok(Line::Super(producer, String::new()));
    }
    let builder = session.environment.producer().on_closed(Box::new(closed));
    let made = match (call.text("name"), is_filtered(call)) {
        ("", true) => builder.filter_value_extractor(filters::value_for).build(target).await.map(Line::Plain),
        ("", false) => builder.build(target).await.map(Line::Plain),
        // the name comes first: it takes a filter away that the builder has already
        (name, true) => builder.name(name).filter_value_extractor(filters::value_for).build(target).await.map(Line::Named),
        (name, false) => builder.name(name).build(target).await.map(Line::Named),
    };
    made.map_err(errors::producer_create)
}

impl Publisher {
    /// The Producer, in turn; until it is declared, unless it is closed meanwhile: the declaring has no time-out, so
    /// whoever closes drops it.
    async fn line(
        &self,
        session: &Arc<Session>,
        call: &Call,
    ) -> Result<tokio::sync::MutexGuard<'_, Option<Line>>, Failure> {
        let mut closing = self.closing.subscribe();
        tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => Err(Failure::new("closed", "the publisher was closed").surely()),
            line = self.declared(session, call) => line,
        }
    }

    async fn declared(
        &self,
        session: &Arc<Session>,
        call: &Call,
    ) -> Result<tokio::sync::MutexGuard<'_, Option<Line>>, Failure> {
        let mut line = self.line.lock().await;
        if line.is_none() {
            let target = call.text("target").to_owned();
            let closed = Closed { session: session.clone(), target, over: self.over.clone() };
            match made(session, call, closed).await {
                Ok(made) => *line = Some(made),
                Err(failure) => {
                    session.forget(call);
                    return Err(failure);
                }
            }
        }
        if let Some(Line::Super(_, key)) = line.as_mut() {
            *key = call.args["routing"]["key"].as_str().unwrap_or_default().to_owned();
        }
        Ok(line)
    }

    pub fn is_open(&self) -> bool {
        !*self.over.borrow()
    }

    pub async fn close(&self) -> Result<(), Failure> {
        self.closing.send_replace(true);
        let line = self.line.lock().await.take();
        self.over.send_replace(true);
        match line {
            Some(Line::Plain(producer)) => producer.close().await.map_err(errors::producer_close),
            Some(Line::Named(producer)) => producer.close().await.map_err(errors::producer_close),
            Some(Line::Super(producer, _)) => producer.close().await.map_err(errors::producer_close),
            None => Ok(()),
        }
    }

    /// What became of a message; none when nobody will tell: the library has said that the Producer is closed.
    async fn end(&self, told: oneshot::Receiver<Told>) -> Option<Told> {
        let mut over = self.over.subscribe();
        tokio::select! {
            biased;
            status = told => status.ok(),
            _ = over.wait_for(|over| *over) => None,
        }
    }
}

impl Line {
    /// Hands a message over; what became of it comes over the channel.
    async fn send(&mut self, message: Message) -> Result<oneshot::Receiver<Told>, Failure> {
        let (tell, told) = oneshot::channel();
        if let Line::Super(producer, key) = self {
            // it may call back for each of several partitions: the first one counts
            let tell = Arc::new(std::sync::Mutex::new(Some(tell)));
            let callback = move |status| {
                let first = tell.lock().unwrap().take();
                async move {
                    let _ = first.map(|tell| tell.send(status));
                }
            };
            let sending = ROUTE.scope(key.clone(), producer.send(message, callback));
            return sending.await.map(|()| told).map_err(errors::super_publish);
        }
        let callback = |status| async {
            let _ = tell.send(status); // nobody waits any more
        };
        match self {
            Line::Plain(producer) => producer.send(message, callback).await,
            Line::Named(producer) => producer.send(message, callback).await,
            Line::Super(..) => unreachable!("sent above"),
        }
        .map_err(errors::publish)?;
        Ok(told)
    }
}

fn record(item: &Value) -> Result<Message, Failure> {
    let mut builder = Message::builder().body(body_bytes(&item["body"])?);
    if let Some(key) = item["key"].as_u64().or_else(|| item["key"].as_str()?.parse().ok()) {
        builder = builder.publishing_id(key);
    }
    if let Some(headers) = item["headers"].as_object().filter(|headers| !headers.is_empty()) {
        let mut properties = builder.application_properties();
        for (name, value) in headers {
            properties = properties.insert(name.as_str(), simple(value));
        }
        builder = properties.message_builder();
    }
    Ok(builder.build())
}

fn simple(value: &Value) -> SimpleValue {
    match value {
        Value::Null => SimpleValue::Null,
        Value::Bool(flag) => SimpleValue::Boolean(*flag),
        Value::Number(number) if number.is_i64() => SimpleValue::Long(number.as_i64().unwrap_or(0)),
        other => SimpleValue::from(other.as_str().map_or_else(|| other.to_string(), str::to_owned).as_str()),
    }
}

pub async fn publish(call: Call) -> Answer {
    let message = record(&call.args)?;
    let session = of(&call)?;
    let publisher = session.publisher(&call);
    let mut guard = publisher.line(&session, &call).await?;
    let line = guard.as_mut().expect("declared");
    if let (Line::Plain(producer), true) = (&*line, call.waits()) {
        let producer = producer.clone();
        let mut sending = Box::pin(async move { producer.send_with_confirm(message).await });
        let outcome = first_step(&mut sending).await; // the message is in the library's queue
        drop(guard);
        let told = match outcome {
            Some(told) => told,
            None => sending.await,
        };
        return acked(&told.map_err(errors::publish)?);
    }
    let told = line.send(message).await?;
    drop(guard);
    if !call.waits() {
        tokio::spawn(async move { tell(&call, &publisher, told).await });
        return Ok(json!({"outcome": "sent", "key": null, "meta": {}}));
    }
    match publisher.end(told).await {
        Some(told) => acked(&told.map_err(errors::publish)?),
        None => Err(Failure::new("closed", "the producer was closed before the confirm")),
    }
}

fn acked(status: &ConfirmationStatus) -> Answer {
    if !status.confirmed() {
        return Err(errors::code(status.status(), format!("not confirmed: {:?}", status.status())));
    }
    Ok(json!({"outcome": "acked", "key": number(status.publishing_id()), "meta": {}}))
}

/// A loop over the call for one message: `batch_send` puts messages into the same queue, one by one, and has one callback
/// for all.
pub async fn publish_many(call: Call) -> Answer {
    let messages = call.args["messages"].as_array().into_iter().flatten().map(record).collect::<Result<Vec<_>, _>>()?;
    let session = of(&call)?;
    let publisher = session.publisher(&call);
    let mut guard = publisher.line(&session, &call).await?;
    let line = guard.as_mut().expect("declared");
    let mut ends = Vec::new();
    for message in messages {
        ends.push(line.send(message).await?);
    }
    drop(guard);
    if call.waits() {
        let mut outcomes = Vec::new();
        for told in ends {
            outcomes.push(tell(&call, &publisher, told).await);
        }
        return Ok(json!({"outcomes": outcomes}));
    }
    let sent = vec![json!({"outcome": "sent", "key": null}); ends.len()];
    tokio::spawn(async move {
        for told in ends {
            tell(&call, &publisher, told).await;
        }
    });
    Ok(json!({"outcomes": sent}))
}

/// Waits for the outcome of a message and writes an event for it; gives what it says.
async fn tell(call: &Call, publisher: &Publisher, told: oneshot::Receiver<Told>) -> Value {
    let fields = match publisher.end(told).await {
        Some(Ok(status)) if status.confirmed() => {
            json!({"outcome": "acked", "key": number(status.publishing_id()), "code": null})
        }
        Some(Ok(status)) => {
            json!({"outcome": "nacked", "key": number(status.publishing_id()), "code": u16::from(status.status())})
        }
        _ => json!({"outcome": "unknown", "key": null, "code": null}),
    };
    let mut event = fields.clone();
    event["id"] = json!(call.id);
    call.kit.emit("outcome", event);
    fields
}

pub async fn declare(call: Call) -> Answer {
    let session = of(&call)?;
    drop(session.publisher(&call).line(&session, &call).await?);
    Ok(json!({}))
}

pub async fn delete(call: Call) -> Answer {
    match of(&call)?.forget(&call) {
        Some(publisher) => publisher.close().await.map(|()| json!({})),
        None => Err(Failure::new("closed", "no such publisher").surely()),
    }
}
