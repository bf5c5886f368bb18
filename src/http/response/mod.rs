//! Responses: a status with headers, errors as responses, and responses with an entity tag.

pub mod answer;
pub mod error;
pub mod etag;
