//! The partner API, `/partner/v1`: a separate table of operations beside the contract's, built from the same parts.

pub mod get_sign_up_status;
pub mod list_events;
pub mod list_inbox;
pub mod list_sign_ups;
pub mod page;

use super::Entry;

operations! {
    /// Every one of them, in the order of the documents.
    get_sign_up_status::GetSignUpStatus,
    list_sign_ups::ListSignUps,
    list_events::ListEvents,
    list_inbox::ListInbox,
}
