//! What is answered: a status with headers, errors as answers, and answers with an entity tag.

pub mod answer;
pub mod error;
pub mod etag;
