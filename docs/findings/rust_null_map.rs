mod fakebrokers;

use rabbitmq_stream_client::Environment;
use serde_json::json;

#[tokio::main]
async fn main() {
    let broker = fakebrokers::serve("rabbitmq-stream", &[]);
    // the answer to Open with a null map (-1 entries) as its properties
    broker.call("faults", json!({"match": {"kind": "OpenResponse"}, "effect": [
        {"type": "rewrite", "fields": {"properties": null}}, {"type": "extend", "hex": "ffffffff"}]}));
    let built = Environment::builder().host(&broker.host).port(broker.port).build().await;
    println!("the process lives: {}", built.is_ok());
    std::process::exit(0);
}
