//! Who may read the answers from a browser.

use crate::prelude::*;

fn preflight(path: &str) -> hyper::http::request::Builder {
    Request::options(path)
        .header("origin", "https://partner.example")
        .header("access-control-request-method", "GET")
        .header("access-control-request-headers", "authorization")
}

#[tokio::test(flavor = "multi_thread")]
async fn public_data_is_open_and_agent_actions_are_not() {
    let server = Server::start_with(&["--public-per-minute", "2"]);
    let open = ALL.iter().filter(|op| op.spec.access == Access::Public).map(|op| op.spec.path);
    for path in open.chain(["/", "/v1", "/openapi.json"]) {
        for _ in 0..5 {
            let answer = server.send(preflight(path), "").await;
            assert_eq!(answer.status, 204, "preflights are not counted");
            assert_eq!(answer.header("access-control-allow-origin"), "*");
            assert!(answer.header("access-control-allow-methods").contains("GET"));
            assert!(answer.header("access-control-allow-headers").contains("Authorization"));
        }
    }
    for _ in 0..3 {
        let answer = server.get("/v1/stats").await;
        assert_eq!(answer.header("access-control-allow-origin"), "*", "{}", answer.status);
        let exposed = answer.header("access-control-expose-headers").to_lowercase();
        assert!(["retry-after", "ratelimit", "ratelimit-policy"].iter().all(|name| exposed.contains(name)));
    }
    assert_eq!(server.get("/v1/stats").await.status, 429);
    for operation in ALL.iter().filter(|op| op.spec.access == Access::Agent) {
        let answer = server.send(preflight(operation.spec.path), "").await;
        assert_eq!(answer.header("allow"), "POST, OPTIONS");
        assert!(!answer.headers.keys().any(|name| name.as_str().starts_with("access-control")));
    }
}
