//! Things that hold for any input.

use proptest::prelude::*;

use crate::prelude::*;
use unionhall::domain::api_key::KeyId;
use unionhall::domain::referral::ReferralCode;
use unionhall::operations::{Input, create_referral_link::ReferralLinkRequest, sign_up_user::InviteRequest};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((".{0,8}", inner), 0..5).prop_map(|pairs| pairs.into_iter().collect()),
        ]
    })
}

/// Values near what the schema allows, on both sides of it.
fn near_email() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~é-]{1,8}(\\.[a-z0-9é]{1,4}){0,2}@[a-z0-9é]{1,6}(-[a-z]{1,3})?(\\.[a-z]{1,5}){1,2}"
            .prop_map(Value::from),
        2 => "[a-z.@ \"+\\-\u{7f}\u{a0}\u{200b}é]{0,12}@[a-z.\\- é]{0,10}".prop_map(Value::from),
        1 => (25..45_usize).prop_map(|length| format!("{}@example.com", "é".repeat(length)).into()),
        1 => (300..330_usize).prop_map(|length| format!("{}@example.com", "é".repeat(length - 12)).into()),
        1 => any_json(),
    ]
}

fn near_invite() -> impl Strategy<Value = Value> {
    let state = prop_oneof![Just(json!("CA")), Just(json!("DC")), Just(json!("ca")), Just(json!("XX")), any_json()];
    let choice = prop_oneof![6 => any::<bool>().prop_map(Value::from), 1 => any_json()];
    let slug = prop_oneof![6 => prop::sample::select(vec!["travel", "internet", "groceries"]), 1 => Just("pets")];
    let categories = prop_oneof![
        4 => prop::collection::hash_map(slug, choice, 0..4).prop_map(|map| json!(map)),
        1 => any_json(),
    ];
    // NULs are dropped before lengths are counted, which no schema can say; they are tested beside the type.
    let comments = prop_oneof![
        4 => "[^\u{0}]{0,40}".prop_map(Value::from),
        1 => (990..1010_usize).prop_map(|length| "é".repeat(length).into()),
        1 => any_json().prop_filter("NUL", |value| !value.to_string().contains("\\u0000")),
    ];
    let code = prop_oneof![3 => "[0-9a-zA-Z/:?]{0,20}".prop_map(Value::from), 1 => any_json()];
    let other = prop_oneof![8 => Just(None), 1 => any_json().prop_map(Some)];
    let maybe = |strategy: BoxedStrategy<Value>| prop::option::weighted(0.6, strategy);
    (
        prop::option::weighted(0.95, near_email()),
        maybe(state.boxed()),
        maybe(categories.boxed()),
        maybe(comments.boxed()),
        maybe(code.boxed()),
        other,
    )
        .prop_map(|(email, state, categories, comments, code, other)| {
            let fields = [
                ("email", email),
                ("usState", state),
                ("categories", categories),
                ("otherComments", comments),
                ("refCode", code),
                ("other", other),
            ];
            fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
        })
}

fn schema(name: &str) -> jsonschema::Validator {
    let folder = tempfile::tempdir().unwrap();
    let output = crate::server::unionhall(folder.path()).arg("openapi").output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let schema = &document["components"]["schemas"][name];
    // What an email address is, JSON Schema leaves to each reader; the next test compares our grammar with this one's.
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(true)
        .with_format("email", |text| EmailAddress::parse(text).is_ok())
        .build(schema)
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_body_makes_it_panic_or_answer_500() {
    let (server, key) = Server::with_key(&["--key-per-minute", "1000000"]);
    let mut connection = server.connect(std::net::Ipv4Addr::LOCALHOST).await;
    let bodies = prop_oneof![
        near_invite().prop_map(|value| value.to_string().into_bytes()),
        any_json().prop_map(|value| value.to_string().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..200),
        // JSON with a few bytes changed.
        (near_invite(), prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)).prop_map(
            |(value, changes)| {
                let mut bytes = value.to_string().into_bytes();
                for (at, byte) in changes {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
                bytes
            }
        ),
    ];
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for n in 0..1500 {
        let body = bodies.new_tree(&mut runner).unwrap().current();
        let path = if n % 2 == 0 { "/v1/invite" } else { "/v1/referral-link" };
        let request = hyper::Request::post(path).header("authorization", format!("Bearer {key}"));
        let answer = connection.send(request, body.clone()).await;
        let status = answer.status.as_u16();
        assert!(status == 200 || status == 400, "{status} for {:?}", String::from_utf8_lossy(&body));
        assert_eq!(answer.json()["ok"], status == 200);
    }
    assert!(!server.log().contains("\"level\":\"error\""), "{}", server.log());
}

mod once {
    use super::*;

    proptest! {
        #[test]
        fn addresses_are_kept_as_typed_or_refused(text in "\\PC{0,40}|[a-z.@+]{0,20}@[a-z.]{0,10}") {
            if let Ok(email) = EmailAddress::parse(&text) {
                prop_assert_eq!(email.as_typed(), text.as_str());
                let again = EmailAddress::parse(&email.normalized()).expect("the compared form is an address");
                prop_assert_eq!(again.normalized(), email.normalized());
                let mailbox = EmailAddress::parse(&email.mailbox()).expect("and so is the mailbox");
                prop_assert_eq!(mailbox.mailbox(), email.mailbox());
            }
        }

        #[test]
        fn keys_read_back_or_are_refused(random in any::<[u8; 25]>(), at in 0..51_usize, to in any::<char>(), text in "\\PC{0,60}") {
            let key = ApiKey::from_random(&random);
            prop_assert_eq!(ApiKey::parse(key.reveal()), Ok(key.clone()));
            let changed: String = key.reveal().chars().enumerate().map(|(i, c)| if i == at { to } else { c }).collect();
            prop_assert_eq!(ApiKey::parse(&changed).is_ok(), changed == key.reveal());
            prop_assert!(ApiKey::parse(&text).is_err());
            prop_assert!(text.parse::<KeyId>().map_or(true, |id| id.as_str() == text));
        }

        #[test]
        fn codes_and_links_read_back_or_are_refused(bits in any::<u64>(), site in "https://[a-z]{1,10}\\.example(/[a-z]{1,8})?", text in "\\PC{0,40}") {
            let digits: String = (0..12).map(|i| char::from(b"0123456789abcdefghjkmnpqrstvwxyz"[(bits >> (i * 5)) as usize & 31])).collect();
            let code = ReferralCode::from_canonical(&digits).unwrap();
            prop_assert_eq!(ReferralCode::from_pasted(&code.link(&site)), Some(code));
            prop_assert_eq!(ReferralCode::from_pasted(&digits.to_uppercase()), Some(code));
            if let Some(read) = ReferralCode::from_pasted(&text) {
                prop_assert_eq!(ReferralCode::from_canonical(read.as_str()), Some(read));
            }
        }

        #[test]
        fn forwarded_headers_name_the_right_most_stranger_or_nobody(
            hops in prop::collection::vec(prop_oneof![any::<IpAddr>().prop_map(|ip| ip.to_string()), "[ -~]{0,12}"], 0..6),
            ours in 0..6_usize,
        ) {
            use unionhall::http::request::client_address::TrustedProxies;
            let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
            let peer: IpAddr = "10.0.0.1".parse().unwrap();
            let all: Vec<_> = hops.iter().cloned().chain((0..ours).map(|n| format!("10.1.0.{n}"))).collect();
            let mut headers = hyper::HeaderMap::new();
            headers.insert("x-forwarded-for", all.join(", ").parse().unwrap());
            let client = proxies.client(peer, &headers);
            // Whoever it is, the header or the connection named them.
            let named = all.join(", ").split(',').any(|hop| hop.trim().parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical() == client));
            prop_assert!(named || client == peer || hops.iter().any(|hop| hop.contains(&client.to_string())));
            let stranger = TrustedProxies::new(Vec::new()).client(peer, &headers);
            prop_assert_eq!(stranger, peer);
        }
    }

    /// Where our grammar and the common one differ is known: ours wants two labels and takes letters of every script, and has
    /// no quoted local parts and no address literals.
    #[test]
    fn our_addresses_are_the_formats_addresses() {
        let common = jsonschema::options().should_validate_formats(true).build(&json!({ "format": "email" })).unwrap();
        let texts = prop_oneof![
            "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~.-]{1,12}@[a-z0-9-]{1,6}(\\.[a-z0-9-]{1,5}){1,2}",
            "[a-z.@ ,:;<>()\\\\+-]{0,10}@[a-z.-]{0,10}",
        ];
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(3000)
        });
        let taken = std::cell::Cell::new(0);
        runner
            .run(&texts, |text| {
                // The other keeps labels with two hyphens for encoded names; ours leaves that to the mail server.
                prop_assume!(!text.contains("--"));
                let ours = EmailAddress::parse(&text).is_ok();
                let one_label = text.rsplit('@').next().is_some_and(|domain| !domain.contains('.'));
                taken.set(taken.get() + u32::from(ours));
                prop_assert_eq!(ours, common.is_valid(&json!(text)) && !one_label, "{}", text);
                Ok(())
            })
            .unwrap();
        assert!(taken.get() > 300);
    }

    /// The places of a sign-up that are wrong by the schema, each judged beside a good address alone.
    fn wrong_places(schema: &jsonschema::Validator, fields: &serde_json::Map<String, Value>) -> Vec<String> {
        let is_wrong = |field: &str, value: Value| {
            let mut alone = json!({ "email": "ana@example.com" });
            alone[field] = value;
            !schema.is_valid(&alone)
        };
        let mut wrong: Vec<_> = (!fields.contains_key("email")).then(|| "email".to_owned()).into_iter().collect();
        for (field, value) in fields {
            match value.as_object().filter(|_| field == "categories") {
                Some(choices) => wrong.extend(
                    choices
                        .iter()
                        .filter(|(slug, chosen)| is_wrong(field, json!({ slug.as_str(): chosen })))
                        .map(|(slug, _)| format!("categories.{slug}")),
                ),
                None if is_wrong(field, value.clone()) => wrong.push(field.clone()),
                None => {}
            }
        }
        wrong
    }

    #[test]
    fn the_schema_and_the_decoder_agree_both_ways() {
        let (invite, link) = (schema("InviteRequest"), schema("ReferralLinkRequest"));
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(3000)
        });
        let counts = std::cell::Cell::new([0_u32; 2]);
        runner
            .run(&prop_oneof![8 => near_invite(), 1 => any_json()], |value| {
                let body = value.to_string();
                let accepted = InviteRequest::decode(body.as_bytes());
                prop_assert_eq!(accepted.is_ok(), invite.is_valid(&value), "{} {:?}", value, accepted);
                if let (Err(error), Some(fields)) = (&accepted, value.as_object()) {
                    let wrong = wrong_places(&invite, fields);
                    let told = error.message();
                    let all = if wrong.len() == 1 { "" } else { &*format!("{} mistakes: ", wrong.len()) };
                    prop_assert!(told.starts_with(all), "{}\n{}\n{:?}", value, told, wrong);
                    prop_assert!(wrong.iter().all(|path| told.contains(&format!("{path}: "))), "{}\n{}", value, told);
                }
                let mut seen = counts.get();
                seen[usize::from(accepted.is_ok())] += 1;
                counts.set(seen);
                prop_assert_eq!(
                    ReferralLinkRequest::decode(body.as_bytes()).is_ok(),
                    link.is_valid(&value),
                    "{}",
                    value
                );
                Ok(())
            })
            .unwrap();
        assert!(counts.get().iter().all(|seen| *seen > 300), "both sides were visited: {:?}", counts.get());
    }
}
