//! Filter values of messages: the text of a body up to the first colon.

use rabbitmq_stream_client::types::Message;
use rabbitmq_stream_client::FilterConfiguration;
use serde_json::Value;

fn value_of(message: &Message) -> Option<String> {
    let body = message.data().unwrap_or_default();
    let end = body.iter().position(|byte| *byte == b':')?;
    Some(String::from_utf8_lossy(&body[..end]).into_owned())
}

/// The value as the library takes it, which has no word for none.
pub fn value_for(message: &Message) -> String {
    value_of(message).unwrap_or_default()
}

/// What a subscription wants, with the predicate that the library asks of its users.
pub fn wanted(filter: &Value) -> Option<FilterConfiguration> {
    let texts = filter["values"].as_array()?.iter().filter_map(|value| Some(value.as_str()?.to_owned()));
    let values: Vec<String> = texts.collect();
    let unfiltered = filter["unfiltered"].as_bool().unwrap_or(false);
    let configuration = FilterConfiguration::new(values.clone(), unfiltered);
    Some(configuration.post_filter(move |message| value_of(message).map_or(unfiltered, |value| values.contains(&value))))
}
