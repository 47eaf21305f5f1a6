mod fakebrokers;

use futures::StreamExt;
use rabbitmq_stream_client::types::{Message, OffsetSpecification};
use rabbitmq_stream_client::Environment;
use serde_json::json;

const MESSAGES: u64 = 400;

#[tokio::main]
async fn main() {
    let broker = fakebrokers::serve("rabbitmq-stream", &[]);
    broker.call("create_stream", json!({"name": "orders"}));
    let environment = Environment::builder().host(&broker.host).port(broker.port).build().await.unwrap();
    let producer = environment.producer().build("orders").await.unwrap();
    for _ in 0..MESSAGES {
        producer.send_with_confirm(Message::builder().body("x").build()).await.unwrap(); // a chunk each
    }
    // the server sends more than it was asked for
    let more = json!({"type": "rewrite", "fields": {"credit": 500}});
    broker.call("faults", json!({"match": {"kind": "Subscribe"}, "effect": more}));
    let mut consumer = environment.consumer().offset(OffsetSpecification::First).build("orders").await.unwrap();
    let mut offsets = Vec::new();
    while (offsets.len() as u64) < MESSAGES {
        offsets.push(consumer.next().await.unwrap().unwrap().offset());
    }
    println!("got all {MESSAGES}, in their order: {}", offsets.is_sorted());
    std::process::exit(0);
}
