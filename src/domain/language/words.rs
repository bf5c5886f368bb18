//! The names of all texts: a language's file has each of them, or it does not read.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Phrase;
use crate::domain::catalog::category::Category;
use crate::domain::us_state::UsState;

macro_rules! words {
    ($($section:ident $type:ident { $($text:ident)* })*) => {
        /// Every text of one language.
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Words {
            /// What the language calls itself.
            pub name: String,
            pub months: [String; 12],
            $(pub $section: $type,)*
            /// By slug.
            category: BTreeMap<String, String>,
            /// By postal code, where the name is not the English one.
            state: BTreeMap<String, String>,
        }

        $(
            #[derive(Debug, Deserialize)]
            #[serde(deny_unknown_fields)]
            pub struct $type { $(pub $text: Phrase,)* }
        )*
    };
}

words! {
    site SiteWords {
        skip languages tagline footer about privacy terms own_page questions problem optional a_year date moment
        one_day days one_member members one_person people one_group groups a_second seconds minutes hours
    }
    join JoinWords {
        title title_invited about card_title card_title_invited card_headline
        invited unknown_code headline lead savings members paused paused_text paused_invited heading again
        again_text expired expired_text change change_text problems email email_hint meant meant_text meant_yes
        meant_no honeypot categories categories_hint more_categories not_offered part_of all_together chosen_total
        overlap more state no_state comments no_scripts working worked button after policies member meaning step_1
        step_1_text step_2 step_2_text step_3 step_3_text referral referral_text offer
    }
    mistake MistakeWords {
        email_empty email_incomplete email_incomplete_meant email_wrong email_wrong_meant email_several email_letter
        email_long state comments not_whole code_form code_wrong not_sent unsure
    }
    rule RuleWords {
        group single most confirmed oneself
    }
    notice NoticeWords {
        words
    }
    check_inbox CheckInboxWords {
        title kicker heading lead heading_waits lead_waits wrong_address change next step_1 step_1_text step_1_waits
        step_2 step_2_text step_3 step_3_text caps silence
    }
    confirm ConfirmWords {
        title kicker heading lead partner_told changed yours address through our_form state comments referrer
        referrer_gone bills no_bills bills_savings together button not_me
    }
    share ShareWords {
        title kicker heading lead lead_members title_again kicker_again heading_again lead_again link copy_label
        copy copied by_mail by_text_message earns own_page subject words
    }
    decline DeclineWords {
        kicker title heading lead_partner lead_form ask button member_title member_heading member_ask member_button
        done_title done_kicker done_heading done_text member_done_heading member_done_text confirmed_title
        confirmed_heading confirmed_text confirmed_member confirmed_left lapsed_title lapsed_heading lapsed_text
        lapsed_again undo undo_text undo_button mail mail_kept no_again no_partner no_mail no_mail_until save saved
        keep lapsed_member
    }
    outcome OutcomeWords {
        back_form back_own to_form sign_up_again unknown unknown_text unknown_next declined declined_text
        declined_next declined_action too_many too_many_text too_many_next paused paused_text paused_next problem
        problem_text problem_next unsure unsure_text unsure_next unsure_own not_found not_found_text not_found_next
        origin origin_text origin_next old_form old_form_text old_form_next used used_text used_next used_action
        no_mail no_mail_text no_mail_next left left_text left_next
    }
    sandbox SandboxWords {
        banner banner_text title text next inbox inbox_of empty to from received html_part
    }
    sign_in SignInWords {
        title kicker heading lead sign_in email email_empty button not_member signed_out signed_out_everywhere
        not_signed_in sent_title sent_lead code code_label code_hint code_button sent_none enter_title enter_heading
        enter_lead enter_button enter_not
    }
    own OwnWords {
        title since heading signed_in qr qr_caption signed_up credited counts_hint answers answers_text not_saved
        save_answers answers_saved left_heading left_lead left_text left_back left_back_paused left_done joined
        others older asked program unchecked with mailed outcome told not_kept by_code by_assistant by_api
        confirmed_on declined_on lapsed_on confirmed declined lapsed pending how_button how_one_click how_leaving
        how_taken_back mail silent complained bounced stopped mail_again mail_again_done want_again sign_in_mail
        save mail_saved language language_saved data download download_hint sign_out sign_out_everywhere leave erase
        leave_heading leave_lead leave_1 leave_2 leave_3 leave_4 leave_5 leave_button stay erase_heading erase_lead
        erase_lead_member erase_1 erase_2 erase_3 erase_4 erase_5 erase_first erase_button keep erased_title
        erased_heading erased_lead erased_shared erased_silent erased_back erased_back_later save_language
    }
    mail MailWords {
        confirm_subject confirm_preview confirm_heading confirm_button confirm_here asked_by_partner partner_told
        asked_by_form not_before link_works agree referral_later confirm_decline confirm_decline_text
        confirm_decline_here member_subject member_preview member_heading member_nothing member_reminder
        member_referral member_button member_decline member_decline_text member_decline_here sign_in_subject
        sign_in_preview sign_in_heading sign_in_asked sign_in_button sign_in_here sign_in_code sign_in_works
        sign_in_not_you own_page read_here
    }
    about AboutWords {
        title heading no_text what what_text how bills bills_text members assistants contact mail_sender
    }
    privacy PrivacyWords {
        title heading no_text controller controller_text kept kept_address kept_answers kept_evidence kept_referral
        kept_mail kept_sign_in not_kept long long_unconfirmed long_left long_mailbox long_member long_erased
        long_backups purpose purpose_text partners cookies cookies_text rights rights_text
    }
    terms TermsWords {
        title heading no_text joining joining_1 joining_2 joining_3 joining_4 referral told joining_5
    }
}

impl Words {
    pub fn category(&self, category: Category) -> &str {
        self.category.get(category.slug()).map_or(category.label(), String::as_str)
    }

    pub fn state(&self, state: UsState) -> &str {
        self.state.get(state.code()).map_or(state.name(), String::as_str)
    }
}
