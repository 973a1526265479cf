//! The clients that heartbeats have told the brokers of.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::refusal::Refusal;
use crate::protocol::heartbeat::{Heartbeat, Unregister};

/// A client that a broker knows by its heartbeats, until it unregisters or its connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownClient {
    /// The name it gave itself.
    pub client_id: String,
    /// The name of the broker that knows it.
    pub broker: Arc<str>,
    /// The address it speaks from.
    pub remote: SocketAddr,
    /// The groups of its producers, in alphabetical order.
    pub producer_groups: Vec<String>,
}

/// The known clients of all brokers.
#[derive(Debug, Default)]
pub(super) struct Clients(Mutex<BTreeMap<ConnectionKey, ClientsOfConnection>>);

/// One connection: the index of the broker, and the client's address.
pub(super) type ConnectionKey = (usize, SocketAddr);

/// Producer groups by client id.
type ClientsOfConnection = BTreeMap<String, BTreeSet<String>>;

impl Clients {
    /// Takes in a heartbeat: it replaces what was known of its client.
    pub(super) fn heartbeat(&self, connection: ConnectionKey, heartbeat: Heartbeat) -> Result<(), Refusal> {
        let groups: BTreeSet<_> =
            heartbeat.producer_data_set.into_iter().map(|data| data.group_name).collect();
        if groups.len() > MAX_GROUPS {
            return Err(Refusal::parameter(format!(
                "{} producer groups, the limit is {MAX_GROUPS}",
                groups.len()
            )));
        }
        if groups
            .iter()
            .chain([&heartbeat.client_id])
            .any(|name| name.is_empty() || name.len() > MAX_NAME_BYTES)
        {
            let reason = format!("a client id or group is empty or longer than {MAX_NAME_BYTES} bytes");
            return Err(Refusal::parameter(reason));
        }
        let mut all = self.lock();
        let clients = all.entry(connection).or_default();
        if clients.len() >= MAX_CLIENTS && !clients.contains_key(&heartbeat.client_id) {
            return Err(Refusal::parameter(format!("more than {MAX_CLIENTS} clients on one connection")));
        }
        clients.insert(heartbeat.client_id, groups);
        Ok(())
    }

    /// Forgets a group of a client, and the client with its last group.
    pub(super) fn unregister(&self, connection: ConnectionKey, unregister: &Unregister<'_>) {
        let mut all = self.lock();
        let Some(clients) = all.get_mut(&connection) else { return };
        let Some(groups) = clients.get_mut(unregister.client_id.as_ref()) else { return };
        groups.remove(unregister.producer_group.as_ref());
        if groups.is_empty() {
            clients.remove(unregister.client_id.as_ref());
        }
        if clients.is_empty() {
            all.remove(&connection);
        }
    }

    /// Forgets the clients of a connection that has ended.
    pub(super) fn forget(&self, connection: ConnectionKey) {
        self.lock().remove(&connection);
    }

    /// Calls `each` with the broker, address, id and groups of each client.
    pub(super) fn list<T>(&self, each: impl Fn(usize, SocketAddr, &str, &BTreeSet<String>) -> T) -> Vec<T> {
        let all = self.lock();
        let clients =
            all.iter().flat_map(|(key, clients)| clients.iter().map(move |(id, groups)| (*key, id, groups)));
        clients.map(|((broker, remote), id, groups)| each(broker, remote, id, groups)).collect()
    }

    /// A poisoned table is still whole: each change is one call on a map.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ConnectionKey, ClientsOfConnection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many clients may share one connection.
const MAX_CLIENTS: usize = 256;
/// How many producer groups one client may have.
const MAX_GROUPS: usize = 1_024;
/// The longest client id or group (`Validators.CHARACTER_MAX_LENGTH`).
const MAX_NAME_BYTES: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::heartbeat::ProducerData;

    fn heartbeat(client_id: &str, groups: &[&str]) -> Heartbeat {
        let data = groups.iter().map(|group| ProducerData { group_name: (*group).into() });
        Heartbeat { client_id: client_id.into(), producer_data_set: data.collect() }
    }

    fn names(clients: &Clients) -> Vec<String> {
        clients.list(|broker, remote, id, groups| format!("{broker} {} {id} {groups:?}", remote.port()))
    }

    fn key(broker: usize, port: u16) -> ConnectionKey {
        (broker, ([127, 0, 0, 1], port).into())
    }

    #[test]
    fn a_client_is_known_until_its_last_group_unregisters() {
        let clients = Clients::default();
        clients.heartbeat(key(0, 1), heartbeat("c", &["a", "b"])).unwrap();
        assert_eq!(names(&clients), [r#"0 1 c {"a", "b"}"#]);
        let mut unregister = Unregister { client_id: "c".into(), producer_group: "a".into() };
        clients.unregister(key(1, 1), &unregister);
        clients.unregister(key(0, 1), &unregister);
        assert_eq!(names(&clients), [r#"0 1 c {"b"}"#]);
        unregister.producer_group = "b".into();
        clients.unregister(key(0, 1), &unregister);
        assert!(names(&clients).is_empty());
    }

    #[test]
    fn a_connection_that_ends_takes_its_own_clients_along_and_no_others() {
        let clients = Clients::default();
        clients.heartbeat(key(0, 1), heartbeat("c", &["a"])).unwrap();
        clients.heartbeat(key(0, 1), heartbeat("d", &["a"])).unwrap();
        clients.heartbeat(key(1, 1), heartbeat("c", &["a"])).unwrap();
        clients.forget(key(0, 1));
        assert_eq!(names(&clients), [r#"1 1 c {"a"}"#]);
    }

    #[test]
    fn a_client_without_a_name_or_beyond_the_limits_is_refused() {
        let clients = Clients::default();
        let long = "g".repeat(MAX_NAME_BYTES + 1);
        let many: Vec<_> = (0..=MAX_GROUPS).map(|group| group.to_string()).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        for refused in [heartbeat("", &["a"]), heartbeat("c", &[&long]), heartbeat("c", &many)] {
            assert!(clients.heartbeat(key(0, 1), refused).is_err());
        }
        for client in 0..MAX_CLIENTS {
            clients.heartbeat(key(0, 1), heartbeat(&client.to_string(), &["a"])).unwrap();
        }
        assert!(clients.heartbeat(key(0, 1), heartbeat("one more", &["a"])).is_err());
        assert!(clients.heartbeat(key(0, 1), heartbeat("0", &["b"])).is_ok());
    }
}
