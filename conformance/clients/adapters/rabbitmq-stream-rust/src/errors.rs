//! What the library's errors mean.

use fakebrokers_kit::Failure;
use rabbitmq_stream_client::error::{
    ClientError, ConsumerCloseError, ConsumerCreateError, ConsumerDeliveryError, ProducerCloseError,
    ProducerCreateError, ProducerPublishError, ProtocolError, StreamCreateError, StreamDeleteError,
    SuperStreamProducerPublishError,
};
use rabbitmq_stream_client::types::ResponseCode;

const STREAM_DOES_NOT_EXIST: i64 = 2;

/// A code of the broker; those from 7 to 11 are about who one is.
pub fn code(status: &ResponseCode, text: impl std::fmt::Display) -> Failure {
    let failure = Failure::refused(u16::from(status).into(), text);
    match u16::from(status) {
        7..=11 => Failure { kind: "auth", ..failure },
        _ => failure,
    }
}

pub fn client(error: ClientError) -> Failure {
    let text = error.to_string();
    match error {
        ClientError::Io(error) => Failure::from(&error),
        ClientError::Protocol(ProtocolError::Encode(_)) => Failure::new("invalid", text),
        ClientError::Protocol(ProtocolError::Decode(_)) | ClientError::CastError(_) => Failure::new("protocol", text),
        ClientError::AlreadyClosed => Failure::new("closed", text).surely(),
        ClientError::ConnectionClosed | ClientError::Tls(_) => Failure::new("connection", text),
        ClientError::RequestError(status) => code(&status, text),
        // made of the error of its own queue of messages, whose task has ended: producer.rs, internal_send
        ClientError::GenericError(_) if text == "channel closed" => Failure::new("closed", text).surely(),
        ClientError::GenericError(_) => Failure::new("internal", text),
    }
}

pub fn stream_create(error: StreamCreateError) -> Failure {
    let text = error.to_string();
    match error {
        StreamCreateError::Create { status, .. } => code(&status, text),
        StreamCreateError::Client(error) => client(error),
    }
}

pub fn stream_delete(error: StreamDeleteError) -> Failure {
    let text = error.to_string();
    match error {
        StreamDeleteError::Delete { status, .. } => code(&status, text),
        StreamDeleteError::Client(error) => client(error),
    }
}

pub fn producer_create(error: ProducerCreateError) -> Failure {
    let text = error.to_string();
    match error {
        ProducerCreateError::Create { status, .. } => code(&status, text),
        ProducerCreateError::StreamDoesNotExist { .. } => Failure::refused(STREAM_DOES_NOT_EXIST, text),
        ProducerCreateError::Client(error) => client(error),
        ProducerCreateError::FilteringNotSupport => Failure::new("unsupported", text),
    }
}

pub fn producer_close(error: ProducerCloseError) -> Failure {
    let text = error.to_string();
    match error {
        ProducerCloseError::Close { status, .. } => code(&status, text),
        ProducerCloseError::AlreadyClosed => Failure::new("closed", text).surely(),
        ProducerCloseError::Client(error) => client(error),
    }
}

pub fn publish(error: ProducerPublishError) -> Failure {
    let text = error.to_string();
    match error {
        ProducerPublishError::Create { status, .. } => code(&status, text),
        ProducerPublishError::Closed => Failure::new("closed", text).surely(),
        ProducerPublishError::Confirmation { .. } | ProducerPublishError::Batch { .. } => Failure::new("closed", text),
        ProducerPublishError::Timeout => Failure::new("timeout", text),
        ProducerPublishError::Client(error) => client(error),
    }
}

/// The library keeps no cause. It says "create" of a key that leads to no partition, too: nothing was sent either way.
pub fn super_publish(error: SuperStreamProducerPublishError) -> Failure {
    let text = error.to_string();
    match error {
        SuperStreamProducerPublishError::ProducerCreateError() => Failure::new("invalid", text).surely(),
        SuperStreamProducerPublishError::ProducerPublishError() => Failure::new("closed", text),
    }
}

pub fn consumer_create(error: ConsumerCreateError) -> Failure {
    let text = error.to_string();
    match error {
        ConsumerCreateError::Create { status, .. } => code(&status, text),
        ConsumerCreateError::StreamDoesNotExist { .. } => Failure::refused(STREAM_DOES_NOT_EXIST, text),
        ConsumerCreateError::Client(error) => client(error),
        ConsumerCreateError::FilteringNotSupport => Failure::new("unsupported", text),
        ConsumerCreateError::SingleActiveConsumerNotSupported => Failure::new("invalid", text),
    }
}

pub fn consumer_close(error: ConsumerCloseError) -> Failure {
    let text = error.to_string();
    match error {
        ConsumerCloseError::Close { status, .. } => code(&status, text),
        ConsumerCloseError::AlreadyClosed => Failure::new("closed", text).surely(),
        ConsumerCloseError::Client(error) => client(error),
    }
}

pub fn delivery(error: ConsumerDeliveryError) -> Failure {
    let text = error.to_string();
    match error {
        ConsumerDeliveryError::Credit { status, .. } => code(&status, text),
        ConsumerDeliveryError::Client(error) => client(error),
    }
}
