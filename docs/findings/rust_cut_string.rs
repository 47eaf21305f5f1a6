mod fakebrokers;

use std::time::Duration;

use rabbitmq_stream_client::Environment;
use serde_json::json;

#[tokio::main]
async fn main() {
    let broker = fakebrokers::serve("rabbitmq-stream", &[]);
    // the answers of the server come in pieces, as TCP may bring them
    let pieces = json!({"type": "slice", "size": 20, "gap_s": 0.02});
    broker.call("faults", json!({"match": {"direction": "out"}, "effect": pieces}));
    let build = Environment::builder().host(&broker.host).port(broker.port).build();
    let ended = tokio::time::timeout(Duration::from_secs(3), build).await.is_ok();
    println!("connecting ends within 3 s: {ended}");
    std::process::exit(0);
}
