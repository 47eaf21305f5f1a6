mod fakebrokers;

use std::time::Duration;

use rabbitmq_stream_client::Environment;
use serde_json::json;

#[tokio::main]
async fn main() {
    let broker = fakebrokers::serve("rabbitmq-stream", &[]);
    broker.call("create_stream", json!({"name": "orders"}));
    let environment = Environment::builder().host(&broker.host).port(broker.port).build().await.unwrap();
    for _ in 0..5 {
        let producer = environment.producer().build("orders").await.unwrap();
        producer.close().await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let files = std::fs::read_dir("/proc/self/fd").unwrap();
    let names = files.filter_map(|each| std::fs::read_link(each.unwrap().path()).ok());
    let open = names.filter(|to| to.to_string_lossy().starts_with("socket:")).count();
    println!("five producers were made and closed; sockets that are open: {open}");
    std::process::exit(0);
}
