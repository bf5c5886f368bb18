//! The OpenAPI document against the contract and against the server it describes.

use crate::prelude::*;

fn document() -> Value {
    let folder = tempfile::tempdir().unwrap();
    serde_json::from_slice(&unionhall(folder.path()).arg("openapi").output().unwrap().stdout).unwrap()
}

fn names(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// A validator for one of the document's schemas.
fn validator(document: &Value, schema: &Value) -> jsonschema::Validator {
    let mut whole = schema.clone();
    whole["components"] = document["components"].clone();
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(true)
        .build(&whole)
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_served_document_is_the_printed_one_and_answers_fit_its_schemas() {
    let (server, key) = Server::with_key(&[]);
    let document = document();
    let answer_schema = |path: &str, method: &str, status: &str| {
        document["paths"][path][method]["responses"][status]["content"]["application/json"]["schema"].clone()
    };
    for path in ["/v1/negotiate-categories", "/v1/referral-program", "/v1/stats"] {
        let answer = server.get(path).await.good();
        assert!(validator(&document, &answer_schema(path, "get", "200")).is_valid(&answer), "{answer}");
    }
    for path in ["/v1/invite", "/v1/referral-link"] {
        let example = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"];
        let answer = server.post(path, &key, example.to_string()).await.good();
        assert!(validator(&document, &answer_schema(path, "post", "200")).is_valid(&answer), "{answer}");
        let refusal = server.post(path, &key, "[]").await.json();
        assert!(validator(&document, &answer_schema(path, "post", "400")).is_valid(&refusal), "{refusal}");
    }

    let served: Value = serde_json::from_slice(&server.get("/openapi.json").await.body).unwrap();
    let address = format!("http://{}", server.address);
    assert_eq!(served["servers"], json!([{ "url": address }]));
    let printed = server.json(&["openapi", "--base-url", &address]);
    assert_eq!(served, printed);
    assert_eq!((&served["openapi"], &served["info"]["version"]), (&json!("3.1.0"), &json!("1.0.0")));
}

mod once {
    use super::*;

    #[test]
    fn the_components_are_the_contracts() {
        let document = document();
        let schemas = &document["components"]["schemas"];
        let mut found = names(schemas);
        found.sort_unstable();
        let mut expected = [
            "NegotiationCategory", "NegotiationCategories", "ReferralProgram", "MemberStats", "InviteRequest",
            "InviteResponse", "ReferralLinkRequest", "ReferralLinkResponse", "Error",
        ];
        expected.sort_unstable();
        assert_eq!(found, expected);

        for (schema, properties, required) in [
            ("NegotiationCategory", vec!["slug", "label", "annualSavings"], 3),
            ("NegotiationCategories", vec!["ok", "currency", "categories", "totalPotentialAnnualSavings"], 4),
            (
                "ReferralProgram",
                vec!["ok", "currency", "rewardPerGroup", "groupSize", "maxReward", "maxGroups", "rules"],
                7,
            ),
            ("MemberStats", vec!["ok", "memberCount"], 2),
            ("InviteRequest", vec!["email", "usState", "categories", "otherComments", "refCode"], 1),
            ("InviteResponse", vec!["ok", "inviteLink", "joinedCount", "selectedSavingsTotal", "refAttributed"], 5),
            ("ReferralLinkRequest", vec!["email"], 1),
            ("ReferralLinkResponse", vec!["ok", "inviteLink", "code"], 3),
            ("Error", vec!["ok", "error", "code"], 2),
        ] {
            assert_eq!(names(&schemas[schema]["properties"]), properties, "{schema}");
            assert_eq!(schemas[schema]["required"], json!(properties[..required]), "{schema}");
        }

        let request = &schemas["InviteRequest"];
        assert_eq!(request["additionalProperties"], false);
        assert_eq!(schemas["ReferralLinkRequest"]["additionalProperties"], false);
        let email = &request["properties"]["email"];
        assert_eq!(
            (&email["type"], &email["format"], &email["maxLength"]),
            (&json!("string"), &json!("email"), &json!(320))
        );
        assert_eq!(request["properties"]["usState"]["enum"].as_array().unwrap().len(), 51);
        let categories = &request["properties"]["categories"];
        assert_eq!((names(&categories["properties"]).len(), &categories["additionalProperties"]), (14, &json!(false)));
        assert_eq!(request["properties"]["otherComments"]["maxLength"], 1000);
        // Plain enumerations, as the contract has them: generators make types of them that requests take, too.
        let known = |schema: &str, field: &str| {
            let field = &schemas[schema]["properties"][field];
            assert_eq!((&field["type"], &field["anyOf"]), (&json!("string"), &Value::Null));
            field["enum"].clone()
        };
        assert_eq!(known("NegotiationCategory", "slug"), json!(names(&categories["properties"])));
        assert_eq!(schemas["InviteResponse"]["properties"]["inviteLink"]["format"], "uri");
        assert_eq!(schemas["InviteResponse"]["properties"]["selectedSavingsTotal"]["type"], "number");
        assert_eq!(schemas["MemberStats"]["properties"]["memberCount"]["type"], "integer");
        assert_eq!(schemas["MemberStats"]["properties"]["ok"]["const"], true);
        assert_eq!(schemas["Error"]["properties"]["ok"]["const"], false);
        let codes = [
            "invalid_json", "invalid_submission", "agent_unauthorized", "rate_limited", "backend_not_configured",
            "save_failed",
        ];
        assert_eq!(known("Error", "code"), json!(codes));
        let text = document.to_string();
        for stray in ["\"null\"", "uint", "\"int64\"", "\"default\""] {
            assert!(!text.contains(stray), "{stray}");
        }
    }

    #[test]
    fn every_operation_says_its_statuses_security_and_consent() {
        let document = document();
        for (path, method, id, statuses) in [
            ("/v1/negotiate-categories", "get", "listNegotiationCategories", vec!["200", "304", "429", "503"]),
            ("/v1/referral-program", "get", "getReferralProgram", vec!["200", "304", "429", "503"]),
            ("/v1/stats", "get", "getMemberStats", vec!["200", "429", "503"]),
            ("/v1/invite", "post", "signUpUser", vec!["200", "400", "401", "408", "429", "500", "503"]),
            ("/v1/referral-link", "post", "createReferralLink", vec!["200", "400", "401", "408", "429", "500", "503"]),
        ] {
            let operation = &document["paths"][path][method];
            assert_eq!(operation["operationId"], id);
            let responses = &operation["responses"];
            assert_eq!(names(responses), statuses, "{path}");
            assert!(responses["429"]["headers"].get("Retry-After").is_some());
            let codes = |status: &str| names(&responses[status]["content"]["application/json"]["examples"]);
            assert_eq!(codes("429"), ["rate_limited"]);
            let description = operation["description"].as_str().unwrap();
            if method == "post" {
                assert_eq!(codes("400"), ["invalid_json", "invalid_submission"]);
                assert_eq!(codes("401"), ["agent_unauthorized"]);
                assert_eq!(codes("500"), ["backend_not_configured", "save_failed"]);
                assert_eq!(operation["security"], json!([{ "partnerKey": [] }]));
                assert!(description.contains("explicitly asked to join"), "{description}");
            } else {
                assert_eq!(operation["security"], json!([{}, { "partnerKey": [] }]));
            }
        }
        assert!(document["paths"]["/v1/invite"]["post"]["description"].as_str().unwrap().contains("check their inbox"));
        let scheme = &document["components"]["securitySchemes"]["partnerKey"];
        assert_eq!((&scheme["type"], &scheme["scheme"]), (&json!("http"), &json!("bearer")));
    }

    #[test]
    fn the_examples_fit_their_schemas() {
        let document = document();
        let mut seen = 0;
        for (_, item) in document["paths"].as_object().unwrap() {
            for (_, operation) in item.as_object().unwrap() {
                let contents = operation["responses"].as_object().unwrap().values().chain(operation.get("requestBody"));
                for content in contents.filter_map(|part| part["content"].get("application/json")) {
                    let validator = validator(&document, &content["schema"]);
                    let many =
                        content["examples"].as_object().into_iter().flatten().map(|(_, example)| &example["value"]);
                    for example in many.chain(content.get("example")) {
                        assert!(validator.is_valid(example), "{example}");
                        seen += 1;
                    }
                }
            }
        }
        assert!(seen >= 20, "{seen}");
    }
}
