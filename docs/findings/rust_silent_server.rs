mod fakebrokers;

use std::time::Duration;

use futures::StreamExt;
use rabbitmq_stream_client::Environment;
use serde_json::json;

#[tokio::main]
async fn main() {
    let broker = fakebrokers::serve("rabbitmq-stream", &[]);
    broker.call("create_stream", json!({"name": "orders"}));
    let environment = Environment::builder().host(&broker.host).port(broker.port).heartbeat(1).build().await.unwrap();
    let mut consumer = environment.consumer().build("orders").await.unwrap();
    broker.call("kill", json!({"how": "half-open"})); // as when its host loses its power
    let told = tokio::time::timeout(Duration::from_secs(10), consumer.next()).await;
    println!("heartbeats every second, and silence for 10 s; the consumer is notified: {}", told.is_ok());
    std::process::exit(0);
}
