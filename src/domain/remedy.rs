//! What an operator can do about something, as data. `cli/remedy.rs` writes it as a clause with its command; the log and the
//! operator's page are given that function.

use crate::domain::api_key::{KeyId, Mode};
use crate::domain::campaign::CampaignSlug;
use crate::domain::mail::MailId;
use crate::domain::partner::endpoint::EndpointId;

/// Writes it for the records of that mode.
pub type WriteRemedy = fn(&Remedy, Mode) -> String;

#[derive(Clone)]
pub enum Remedy {
    /// Something that no command does, in words.
    Do(String),
    CheckStore,
    RestoreBackup,
    MakeRoom,
    RunDoctor,
    StartRedis,
    ResumeRecords,
    MakeBackups,
    EraseAgain,
    ResumeSignUps,
    WithdrawSignUps(KeyId),
    Unsuppress,
    ListMail,
    RetryMail(MailId),
    ReleaseMail(MailId),
    DecideOnHeldMail,
    DecideOnMailOfSource {
        is_form: bool,
    },
    DecideOnMailOfKey(KeyId),
    ListKeys,
    RevokeKey(KeyId),
    ListOrMakePartners,
    /// By name.
    ResumePartner(String),
    ListEndpoints,
    RemoveEndpoint,
    RecoverEndpoint(EndpointId),
    RotateSecretAgain,
    EditCampaign(CampaignSlug),
    OfferCampaign(CampaignSlug),
    ActivateCampaign(CampaignSlug),
    HandOver(CampaignSlug),
    /// An offer that misses points of the mandate, or has figures that are none of its numbers.
    SignOffer {
        outside: bool,
        figures: bool,
    },
    AnswerDraft(CampaignSlug),
    PublishDraft(CampaignSlug, u32),
    FinishBatch,
    SettleBatch,
}

impl<T: Into<String>> From<T> for Remedy {
    fn from(words: T) -> Self {
        Self::Do(words.into())
    }
}
