//! rabbitmq-stream-client (https://github.com/rabbitmq/rabbitmq-stream-rust-client) behind the adapter protocol.
//!
//! A session is one Environment, with a Producer for each target and name and a Consumer for each subscription. The
//! library reconnects nothing. What an Environment does not offer (metadata, partitions, stored offsets, sequences)
//! goes over a `Client` of its own, connected for the op, as the Environment itself does it for create and delete.

mod admin;
mod consumer;
mod errors;
mod filters;
mod publisher;
mod session;

use fakebrokers_kit::{locked_version, Adapter};
use serde_json::json;

fn main() {
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_writer(std::io::stderr)
        .init();
    let mut adapter = Adapter::new(json!({
        "adapter": "rabbitmq-stream-rust",
        "adapter_version": "1",
        "library": "rabbitmq-stream-client",
        "library_version": locked_version(include_str!("../Cargo.lock"), "rabbitmq-stream-client"),
        "protocols": ["rabbitmq-stream"],
        "roles": ["publisher", "consumer", "admin"],
        "formats": ["amqp"],
        "restart": "per_scenario", // a Producer that is dropped waits on its thread for the answer of the broker
        "caps": {"ack_timeout": true, "auto_reconnect": false, "callback_sleep": true, "filters": true,
            "named_publisher": true, "offset_without_consumer": true, "properties": true, "reentrant": true, "sac": true,
            "super_streams": true, "tls": true},
        // `send_with_confirm` waits a second, whatever its user wants. It is not declared: what the first message waits
        // for besides, the declaring of its Producer over two connections, has no time-out, as nothing else has.
        "limits": {"heartbeat_min_s": 1},
    }));
    adapter.clear(session::forget_all);
    adapter.op("connect", session::connect);
    adapter.op("state", session::state);
    adapter.op("close", session::close);
    adapter.op("publish", publisher::publish);
    adapter.op("publish_many", publisher::publish_many);
    adapter.op("rmqs.declare_publisher", publisher::declare);
    adapter.op("rmqs.delete_publisher", publisher::delete);
    adapter.op("subscribe", consumer::subscribe);
    adapter.op("unsubscribe", consumer::unsubscribe);
    adapter.op("rmqs.create", admin::create);
    adapter.op("rmqs.delete", admin::delete);
    adapter.op("rmqs.create_super_stream", admin::create_super_stream);
    adapter.op("rmqs.delete_super_stream", admin::delete_super_stream);
    adapter.op("rmqs.metadata", admin::metadata);
    adapter.op("rmqs.partitions", admin::partitions);
    adapter.op("rmqs.route", admin::route);
    adapter.op("rmqs.store_offset", admin::store_offset);
    adapter.op("rmqs.query_offset", admin::query_offset);
    adapter.op("rmqs.query_sequence", admin::query_sequence);
    adapter.run();
}
