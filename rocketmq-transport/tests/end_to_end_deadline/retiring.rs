//! When a connection takes no more requests.
