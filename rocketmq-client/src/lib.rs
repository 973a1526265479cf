//! Client
