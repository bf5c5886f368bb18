//! What many tests here use.

pub(crate) use crate::database::Database;
pub(crate) use crate::doctor::Diagnosis;
pub(crate) use crate::machines::{Cluster, Proxy, folder_for_postgres};
pub(crate) use crate::mailserver::Mailserver;
pub(crate) use crate::metrics::Watched;
pub(crate) use crate::open_store::OpenStore;
pub(crate) use crate::own_page::Browser;
pub(crate) use crate::pages::{form, hidden, leads, letter, page};
pub(crate) use crate::records::{Home, Records};
pub(crate) use crate::server::{
    A_MINUTE, Answer, Connection, Server, block_on, holds, in_time, resident, sign_up, together, tool_call, unionhall,
    unprivileged, until, wait_for,
};
pub(crate) use bytes::Bytes;
pub(crate) use http_body_util::{BodyExt, Full};
pub(crate) use hyper::Request;
pub(crate) use hyper_util::rt::{TokioExecutor, TokioIo};
pub(crate) use mail_parser::MessageParser;
pub(crate) use proptest::strategy::ValueTree;
pub(crate) use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};
pub(crate) use serde_json::{Value, json};
pub(crate) use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
pub(crate) use std::io::{BufRead, BufReader, Write};
pub(crate) use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
pub(crate) use std::os::unix::fs::PermissionsExt;
pub(crate) use std::path::{Path, PathBuf};
pub(crate) use std::process::{Child, Command, Output, Stdio};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Mutex};
pub(crate) use std::time::Duration;
pub(crate) use tokio::io::{AsyncReadExt, AsyncWriteExt};
pub(crate) use tokio::net::{TcpSocket, TcpStream};
pub(crate) use tokio::task::JoinSet;
pub(crate) use tokio::time::Instant;
pub(crate) use tokio_rustls::rustls::RootCertStore;
pub(crate) use unionhall::clock::Clock;
pub(crate) use unionhall::config::Keyring;
pub(crate) use unionhall::domain::api_key::ApiKey;
pub(crate) use unionhall::domain::email::EmailAddress;
pub(crate) use unionhall::domain::secret::Secret;
pub(crate) use unionhall::domain::secret::token::{Purpose, TokenMaker};
pub(crate) use unionhall::domain::sign_up::{NewSignUp, SignUpRef};
pub(crate) use unionhall::domain::time::{Tick, Timestamp};
pub(crate) use unionhall::limiter::memory::MemoryLimiter;
pub(crate) use unionhall::limiter::redis::{Manner, RedisLimiter, Target, TimeOf};
pub(crate) use unionhall::limiter::{Limiter, Scope};
pub(crate) use unionhall::operations::{ALL, Access};
pub(crate) use unionhall::reply::Reply;
pub(crate) use unionhall::store::migration::{MIGRATIONS, Prepare};
pub(crate) use unionhall::store::postgres::{Address, PostgresStore};
pub(crate) use unionhall::store::{Store, StoreError};
