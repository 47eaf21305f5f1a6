mod fakebrokers;

use std::time::Duration;

use moleculer::config::{ConfigBuilder, Transporter};
use moleculer::ServiceBroker;
use serde_json::json;

#[tokio::main]
async fn main() {
    let bus = fakebrokers::serve("moleculer", &["--transporter", "nats"]);
    let fails = json!({"error": {"name": "MoleculerError", "message": "out of tea", "code": 500}});
    bus.call("node", json!({"id": "store", "services": [{"name": "store", "actions": {"take": fails, "look": {}}}]}));

    let config = ConfigBuilder::default().transporter(Transporter::nats(&bus.url)).build();
    let shop = ServiceBroker::new(config);
    tokio::spawn(shop.clone().start());
    while shop.clone().call("store.look", json!({})).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await; // until it knows the store
    }
    let call = shop.call("store.take", json!({}));
    match tokio::time::timeout(Duration::from_secs(5), call).await {
        Ok(ended) => println!("the call ends: {ended:?}"),
        Err(_) => println!("the store answered with error 500; after 5 s the call has not ended"),
    }
    std::process::exit(0);
}
