mod fakebrokers;

use rabbitmq_stream_client::types::Message;
use rabbitmq_stream_client::Environment;
use serde_json::json;

#[tokio::main]
async fn main() {
    let broker = fakebrokers::serve("rabbitmq-stream", &[]);
    broker.call("create_stream", json!({"name": "orders"}));
    let environment = Environment::builder().host(&broker.host).port(broker.port).build().await.unwrap();
    for body in ["tea", "milk"] {
        // a program that places one order and ends; then it runs once more
        let mut producer = environment.producer().name("shop").build("orders").await.unwrap();
        let message = Message::builder().body(body).build();
        let status = producer.send_with_confirm(message).await.unwrap();
        println!("{body}: confirmed {}", status.confirmed());
        producer.close().await.unwrap();
    }
    println!("stored: {}", broker.ask("messages", "name=orders").as_array().unwrap().len());
    std::process::exit(0); // sockets of closed producers are open still
}
