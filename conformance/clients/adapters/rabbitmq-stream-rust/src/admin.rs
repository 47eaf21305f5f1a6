//! The ops of RabbitMQ Stream that are neither publishing nor consuming.

use std::future::Future;

use fakebrokers_kit::{number, Answer, Call, Failure};
use rabbitmq_stream_client::error::ClientError;
use rabbitmq_stream_client::types::{Broker, StreamCreator};
use rabbitmq_stream_client::Client;
use serde_json::{json, Value};

use crate::errors;
use crate::session::of;

fn creator(call: &Call) -> Result<StreamCreator, Failure> {
    let mut creator = of(call)?.environment.stream_creator();
    for (name, value) in call.args["arguments"].as_object().into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        creator.options.insert(name.clone(), text);
    }
    Ok(creator)
}

pub async fn create(call: Call) -> Answer {
    creator(&call)?.create(call.text("target")).await.map_err(errors::stream_create)?;
    Ok(json!({}))
}

pub async fn create_super_stream(call: Call) -> Answer {
    let count = call.integer("partitions").unwrap_or(0) as usize;
    let keys = call.args["keys"].as_array().map(|keys| names(keys));
    creator(&call)?
        .create_super_stream(call.text("target"), count, keys)
        .await
        .map_err(errors::stream_create)?;
    Ok(json!({}))
}

pub async fn delete_super_stream(call: Call) -> Answer {
    let environment = of(&call)?.environment.clone();
    environment.delete_super_stream(call.text("target")).await.map_err(errors::stream_delete)?;
    Ok(json!({}))
}

fn names(texts: &[Value]) -> Vec<String> {
    texts.iter().filter_map(|text| Some(text.as_str()?.to_owned())).collect()
}

pub async fn delete(call: Call) -> Answer {
    of(&call)?.environment.delete_stream(call.text("target")).await.map_err(errors::stream_delete)?;
    Ok(json!({}))
}

/// Asks over a connection of its own.
async fn ask<T, F>(call: &Call, question: impl FnOnce(Client) -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, ClientError>>,
{
    let client = Client::connect(of(call)?.options.clone()).await.map_err(errors::client)?;
    let answer = question(client.clone()).await.map_err(errors::client)?;
    client.close().await.map_err(errors::client)?;
    Ok(answer)
}

pub async fn metadata(call: Call) -> Answer {
    let names = call.args["targets"].as_array().map(|targets| names(targets)).unwrap_or_default();
    let wanted = names.clone();
    let found = ask(&call, |client| async move { client.metadata(wanted).await }).await?;
    let address = |broker: &Broker| format!("{}:{}", broker.host, broker.port);
    let shown: Vec<Value> = names
        .iter()
        .map(|name| match found.get(name) {
            Some(stream) => json!({"name": name, "exists": true, "code": u16::from(&stream.response_code),
                "leader": address(&stream.leader), "replicas": stream.replicas.iter().map(address).collect::<Vec<_>>()}),
            None => json!({"name": name, "exists": false}),
        })
        .collect();
    Ok(json!({"streams": shown}))
}

pub async fn partitions(call: Call) -> Answer {
    let target = call.text("target").to_owned();
    let found = ask(&call, |client| async move { client.partitions(target).await }).await?;
    listed(found.is_ok(), found.streams)
}

pub async fn route(call: Call) -> Answer {
    let (key, target) = (call.text("key").to_owned(), call.text("target").to_owned());
    let found = ask(&call, |client| async move { client.route(key, target).await }).await?;
    listed(found.is_ok(), found.streams)
}

/// The library keeps the code of the answer to itself.
fn listed(is_ok: bool, streams: Vec<String>) -> Answer {
    match is_ok {
        true => Ok(json!({"streams": streams})),
        false => Err(Failure::new("refused", "the server does not know the super stream").surely()),
    }
}

pub async fn store_offset(call: Call) -> Answer {
    let (name, target) = (call.text("name").to_owned(), call.text("target").to_owned());
    let offset = call.integer("offset").ok_or_else(|| Failure::new("invalid", "no offset"))?;
    ask(&call, |client| async move { client.store_offset(&name, &target, offset).await }).await?;
    Ok(json!({}))
}

pub async fn query_offset(call: Call) -> Answer {
    let (name, target) = (call.text("name").to_owned(), call.text("target").to_owned());
    let offset = ask(&call, |client| async move { client.query_offset(name, &target).await }).await?;
    Ok(json!({"offset": number(offset)}))
}

pub async fn query_sequence(call: Call) -> Answer {
    let (name, target) = (call.text("name").to_owned(), call.text("target").to_owned());
    let sequence = ask(&call, |client| async move { client.query_publisher_sequence(&name, &target).await }).await?;
    Ok(json!({"sequence": number(sequence)}))
}
