mod fakebrokers;

use std::time::Duration;

use futures::StreamExt;
use rabbitmq_stream_client::types::OffsetSpecification;
use rabbitmq_stream_client::{Environment, FilterConfiguration};
use serde_json::json;

const MILK: &str = "AFN1oARtaWxr"; // as AMQP messages
const TEA: &str = "AFN1oAN0ZWE=";

/// The offsets of what is delivered to a consumer that wants tea only.
async fn offsets(environment: &Environment, start: OffsetSpecification) -> Vec<u64> {
    let wanted = FilterConfiguration::new(vec!["tea".into()], true).post_filter(|message| message.data() == Some(b"tea"));
    let mut consumer = environment.consumer().offset(start).filter_input(Some(wanted)).build("orders").await.unwrap();
    let mut found = Vec::new();
    while let Ok(Some(delivery)) = tokio::time::timeout(Duration::from_secs(2), consumer.next()).await {
        found.push(delivery.unwrap().offset());
    }
    found
}

#[tokio::main]
async fn main() {
    let broker = fakebrokers::serve("rabbitmq-stream", &[]);
    broker.call("create_stream", json!({"name": "orders"}));
    let bodies = [MILK, TEA, MILK, TEA].map(|body| json!({"base64": body})); // in one chunk
    broker.call("publish", json!({"name": "orders", "bodies": bodies}));
    let environment = Environment::builder().host(&broker.host).port(broker.port).build().await.unwrap();
    println!("tea is at 1 and 3");
    println!("from the first: {:?}", offsets(&environment, OffsetSpecification::First).await);
    println!("from offset 2: {:?}", offsets(&environment, OffsetSpecification::Offset(2)).await);
    std::process::exit(0);
}
