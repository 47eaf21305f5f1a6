//! Consumers, each read by a task of its own, as the library's examples do it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use fakebrokers_kit::{Answer, Call, Failure, Subscription};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use rabbitmq_stream_client::error::{ConsumerCloseError, ConsumerDeliveryError};
use rabbitmq_stream_client::types::{ApplicationProperties, Delivery, OffsetSpecification, SimpleValue};
use serde_json::{json, Map, Value};

use crate::errors;
use crate::filters;
use crate::session::{of, of_subscription, Session};

/// The call that closes: the library's handles have a type each, one of which it does not name.
type Closing = Box<dyn FnOnce() -> BoxFuture<'static, Result<(), ConsumerCloseError>> + Send>;

pub struct Consumption {
    closing: Mutex<Option<Closing>>,
    ended: AtomicBool,
}

impl Consumption {
    /// Whether there is something to close: nobody has, and the library has not told of the end.
    pub fn is_open(&self) -> bool {
        !self.ended.load(Ordering::Relaxed)
    }

    pub async fn close(&self) -> Result<(), Failure> {
        self.ended.store(true, Ordering::Relaxed);
        let closing = self.closing.lock().unwrap().take();
        match closing {
            Some(closing) => closing().await.map_err(errors::consumer_close),
            None => Err(Failure::new("closed", "closed already").surely()),
        }
    }
}

pub async fn subscribe(call: Call) -> Answer {
    let session = of(&call)?;
    let subscription = call.kit.subscribed(&call);
    let start = offset(call.option("offset"));
    let properties = call.option("properties");
    let name = call.option("name").as_str().or_else(|| properties["name"].as_str()).map(str::to_owned);
    let mut ordered: HashMap<String, String> = properties
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect();
    if let Some(name) = &name {
        ordered.entry("name".to_owned()).or_insert_with(|| name.clone());
    }
    let is_single = properties["single-active-consumer"] == "true";
    let updated = {
        let start = start.clone();
        move |_, _| {
            let start = start.clone();
            async move { start }
        }
    };
    let filter = filters::wanted(call.option("filter"));
    let environment = &session.environment;
    if call.option("super_stream").as_bool().unwrap_or(false) {
        let mut builder =
            environment.super_stream_consumer().offset(start).properties(ordered).filter_input(filter);
        if let Some(name) = &name {
            builder = builder.name(name);
        }
        if is_single {
            builder = builder.enable_single_active_consumer(true).consumer_update(updated);
        }
        let consumer = builder.build(call.text("target")).await.map_err(errors::consumer_create)?;
        let handle = consumer.handle();
        return consume(consumer, Box::new(|| handle.close().boxed()), subscription, session);
    }
    let mut builder =
        environment.consumer().offset(start).name_optional(name).properties(ordered).filter_input(filter);
    if is_single {
        builder = builder.enable_single_active_consumer(true).consumer_update(updated);
    }
    let consumer = builder.build(call.text("target")).await.map_err(errors::consumer_create)?;
    let handle = consumer.handle();
    consume(consumer, Box::new(|| handle.close().boxed()), subscription, session)
}

/// Starts the task of a user who reads.
fn consume(
    consumer: impl Stream<Item = Result<Delivery, ConsumerDeliveryError>> + Unpin + Send + 'static,
    closing: Closing,
    subscription: Arc<Subscription>,
    session: Arc<Session>,
) -> Answer {
    let consumption = Arc::new(Consumption { closing: Mutex::new(Some(closing)), ended: AtomicBool::new(false) });
    session.consumers.lock().unwrap().insert(subscription.sub.clone(), consumption.clone());
    tokio::spawn(read(consumer, subscription, session, consumption));
    Ok(json!({}))
}

fn offset(wanted: &Value) -> OffsetSpecification {
    let value = wanted["value"].as_u64().or_else(|| wanted["value"].as_str()?.parse().ok()).unwrap_or(0);
    match wanted["type"].as_str() {
        Some("last") => OffsetSpecification::Last,
        Some("next") => OffsetSpecification::Next,
        Some("offset") => OffsetSpecification::Offset(value),
        Some("timestamp") => OffsetSpecification::Timestamp(value as i64),
        _ => OffsetSpecification::First,
    }
}

/// The loop of a user: until the stream of deliveries ends, which is all that the library says of a lost connection.
async fn read(
    mut consumer: impl Stream<Item = Result<Delivery, ConsumerDeliveryError>> + Unpin,
    subscription: Arc<Subscription>,
    session: Arc<Session>,
    consumption: Arc<Consumption>,
) {
    let mut deliveries = Pin::new(&mut consumer);
    while let Some(delivery) = deliveries.next().await {
        match delivery {
            Ok(delivery) => deliver(&delivery, &subscription).await,
            Err(error) => session.kit.emit(
                "error",
                json!({"where": "read", "session": session.name,
                "sub": subscription.sub, "error": errors::delivery(error).report()}),
            ),
        }
    }
    let asked = consumption.ended.swap(true, Ordering::Relaxed) || session.ended.load(Ordering::Relaxed);
    if session.listens && !asked {
        session.kit.emit(
            "session",
            json!({"session": session.name, "what": "connection_lost",
            "text": "the stream of deliveries has ended", "targets": [subscription.target]}),
        );
    }
}

async fn deliver(delivery: &Delivery, subscription: &Subscription) {
    let message = delivery.message();
    let stream = delivery.stream();
    let meta = if *stream == subscription.target { json!({}) } else { json!({"partition": stream}) };
    let details = json!({"position": delivery.offset().to_string(), "meta": meta,
        "headers": headers(message.application_properties())});
    subscription.deliver(message.data().unwrap_or_default(), details).await;
}

fn headers(properties: Option<&ApplicationProperties>) -> Value {
    let shown = |value: &SimpleValue| match value {
        SimpleValue::Null => Value::Null,
        SimpleValue::Boolean(flag) => json!(flag),
        SimpleValue::Int(number) => json!(number),
        SimpleValue::Long(number) => json!(number),
        SimpleValue::Uint(number) => json!(number),
        SimpleValue::Ulong(number) => json!(number),
        SimpleValue::String(text) => json!(text),
        other => json!(format!("{other:?}")),
    };
    properties.map_or_else(
        || json!({}),
        |found| Value::Object(found.iter().map(|(name, value)| (name.clone(), shown(value))).collect::<Map<_, _>>()),
    )
}

pub async fn unsubscribe(call: Call) -> Answer {
    call.kit.subscription(call.text("sub"))?;
    match of_subscription(call.text("sub")) {
        Some(consumption) => consumption.close().await.map(|()| json!({})),
        None => Err(Failure::new("closed", "not subscribed").surely()),
    }
}
