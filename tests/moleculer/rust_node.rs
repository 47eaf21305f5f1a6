//! A node of the crate `moleculer`: joins the bus of its first argument as `rust-1`, offers `math.add`, and calls the
//! actions that come as lines of stdin (a name and JSON with a blank between), with one line of stdout for each.

use moleculer::config::{ConfigBuilder, Transporter};
use moleculer::service::{ActionBuilder, Service};
use moleculer::{ActionContext, ServiceBroker};
use serde_json::{json, Value};
use tokio::io::{AsyncBufReadExt, BufReader};

fn add(context: ActionContext) -> Result<(), Box<dyn std::error::Error>> {
    let number = |name: &str| context.params[name].as_i64().unwrap_or(0);
    context.reply(json!(number("a") + number("b")));
    Ok(())
}

#[tokio::main]
async fn main() {
    let url = std::env::args().nth(1).expect("the URL of the bus");
    let config = ConfigBuilder::default()
        .transporter(Transporter::nats(url))
        .node_id("rust-1".to_owned())
        .request_timeout(500)
        .build();
    let math = Service::new("math").add_action(ActionBuilder::new("add").add_callback(add).build());
    let broker = ServiceBroker::new(config).add_service(math);
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let (action, params) = line.split_once(' ').expect("an action and its parameters");
        let params: Value = serde_json::from_str(params).expect("JSON");
        println!("{:?}", broker.clone().call(action, params).await);
    }
}
