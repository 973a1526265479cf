//! Keeping brokers informed of a client's groups, and taking that back.

use std::borrow::Cow;

use bytes::Bytes;
#[cfg(any(test, feature = "embedded-broker"))]
use rocketmq_transport::{Command, FieldError};
use rocketmq_transport::{Fields, Header};
use serde::{Deserialize, Serialize};

use crate::protocol::route::null_as_default;

/// The body of a heartbeat (`HeartbeatData`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Heartbeat {
    #[serde(rename = "clientID")]
    pub(crate) client_id: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) producer_data_set: Vec<ProducerData>,
}

/// One producer group of a client (`ProducerData`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProducerData {
    pub(crate) group_name: String,
}

impl Heartbeat {
    /// The body as it is sent.
    pub(crate) fn to_json(&self) -> Bytes {
        serde_json::to_vec(self).expect("a heartbeat holds strings only").into()
    }

    /// Reads a body.
    ///
    /// # Errors
    ///
    /// The body is not JSON, or has no client id; the error says where.
    #[cfg(any(test, feature = "embedded-broker"))]
    pub(crate) fn parse(body: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(body)
    }
}

/// The header of an unregistering (`UnregisterClientRequestHeader`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unregister<'a> {
    pub(crate) client_id: Cow<'a, str>,
    pub(crate) producer_group: Cow<'a, str>,
}

impl Header for Unregister<'_> {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("clientID", &self.client_id);
        fields.str("producerGroup", &self.producer_group);
    }
}

#[cfg(any(test, feature = "embedded-broker"))]
impl Unregister<'static> {
    /// Reads the header of `command`; the group is empty where a consumer unregisters.
    ///
    /// # Errors
    ///
    /// The client id is missing.
    pub(crate) fn decode(command: &Command) -> Result<Self, FieldError> {
        let [client_id, producer_group] = command.select(["clientID", "producerGroup"]);
        Ok(Self {
            client_id: Cow::Owned(client_id.require()?),
            producer_group: Cow::Owned(producer_group.into_value().unwrap_or_default().into_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_reads_as_it_was_written_and_as_java_writes_it() {
        let heartbeat = Heartbeat {
            client_id: "10.0.0.1@7".into(),
            producer_data_set: vec![ProducerData { group_name: "orders".into() }],
        };
        assert_eq!(Heartbeat::parse(&heartbeat.to_json()).unwrap(), heartbeat);
        let java =
            br#"{"clientID":"10.0.0.1@7","consumerDataSet":[{"groupName":"x"}],"heartbeatFingerprint":0,
            "producerDataSet":[{"groupName":"orders"}],"withoutSub":false}"#;
        assert_eq!(Heartbeat::parse(java).unwrap(), heartbeat);
    }

    #[test]
    fn a_heartbeat_without_a_client_is_an_error_that_says_so() {
        let error = Heartbeat::parse(br#"{"producerDataSet":null}"#).unwrap_err();
        assert!(error.to_string().contains("clientID"), "{error}");
    }
}
