//! Which paths there are, what each takes and who may read its answers from a browser.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, HeaderValue,
};
use hyper::{Method, StatusCode};

use super::answer::Answer;
use super::pages::Page;
use crate::operations::{ALL, Access, Entry};

#[derive(Debug, Clone, Copy)]
pub(super) enum Route<'p> {
    Operation(&'static Entry),
    Descriptor,
    OpenApi,
    RegistryEntry,
    Docs,
    Style,
    CopyScript,
    /// Is the process alive?
    Health,
    /// Can it do its work?
    Ready,
    Mcp,
    Page(Page<'p>),
}

impl<'p> Route<'p> {
    pub(super) fn find(path: &'p str) -> Option<Self> {
        match path {
            "/" | "/v1" => Some(Self::Descriptor),
            "/openapi.json" => Some(Self::OpenApi),
            "/server.json" => Some(Self::RegistryEntry),
            "/docs" => Some(Self::Docs),
            "/style.css" => Some(Self::Style),
            "/copy.js" => Some(Self::CopyScript),
            "/healthz" => Some(Self::Health),
            "/readyz" => Some(Self::Ready),
            "/mcp" => Some(Self::Mcp),
            _ => {
                let operation = ALL.iter().find(|operation| operation.spec.path == path).map(Self::Operation);
                operation.or_else(|| Page::find(path).map(Self::Page))
            }
        }
    }

    /// How the log calls it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Operation(operation) => operation.spec.path,
            Self::Descriptor => "/",
            Self::OpenApi => "/openapi.json",
            Self::RegistryEntry => "/server.json",
            Self::Docs => "/docs",
            Self::Style => "/style.css",
            Self::CopyScript => "/copy.js",
            Self::Health => "/healthz",
            Self::Ready => "/readyz",
            Self::Mcp => "/mcp",
            Self::Page(page) => page.name(),
        }
    }

    /// Its place in [`names`].
    const fn place(self) -> usize {
        let after_operations = match self {
            Self::Operation(operation) => return operation.position,
            Self::Descriptor => 0,
            Self::OpenApi => 1,
            Self::RegistryEntry => 2,
            Self::Docs => 3,
            Self::Style => 4,
            Self::CopyScript => 5,
            Self::Health => 6,
            Self::Ready => 7,
            Self::Mcp => 8,
            Self::Page(page) => OTHERS.len() + page.place(),
        };
        ALL.len() + after_operations
    }

    fn method(&self) -> Method {
        use crate::operations::Method as Of;
        match self {
            Self::Operation(operation) => match operation.spec.method {
                Of::Get => Method::GET,
                Of::Post => Method::POST,
            },
            Self::Mcp => Method::POST,
            Self::Descriptor
            | Self::RegistryEntry
            | Self::OpenApi
            | Self::Docs
            | Self::Style
            | Self::CopyScript
            | Self::Health
            | Self::Ready
            | Self::Page(_) => Method::GET,
        }
    }

    pub(super) fn takes(&self, method: &Method) -> bool {
        let own = self.method();
        *method == own || (own == Method::GET && *method == Method::HEAD) || (self.is_form() && *method == Method::POST)
    }

    /// Whether the page can be posted to as well.
    fn is_form(&self) -> bool {
        matches!(self, Self::Page(page) if page.takes_post())
    }

    pub(super) fn allow(&self) -> &'static str {
        match (self.method() == Method::GET, self.is_form()) {
            (true, false) => "GET, HEAD, OPTIONS",
            (true, true) => "GET, HEAD, POST, OPTIONS",
            (false, _) => "POST, OPTIONS",
        }
    }

    /// Whether a body sent here is read; elsewhere a large one is refused unread.
    pub(super) fn reads_body(&self) -> bool {
        matches!(self, Self::Mcp) || matches!(self, Self::Operation(operation) if operation.takes_input)
    }

    /// Whether pages of any site may read the answers. Agent actions are closed: keys do not belong in browsers.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Operation(operation) => operation.spec.access == Access::Public,
            Self::Descriptor | Self::OpenApi | Self::RegistryEntry => true,
            Self::Docs | Self::Style | Self::CopyScript | Self::Health | Self::Ready | Self::Mcp | Self::Page(_) => {
                false
            }
        }
    }

    /// The answer to `OPTIONS`: what may be sent here, and from which pages. Never counted against a limit.
    pub(super) fn preflight(&self) -> Answer {
        let mut answer = Answer::empty(StatusCode::NO_CONTENT);
        answer.set(ALLOW, HeaderValue::from_static(self.allow()));
        if self.is_open() {
            answer.set(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(self.allow()));
            answer.set(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("Authorization, X-Request-Id"));
            answer.set(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
        }
        answer
    }
}

/// The routes that are neither an operation nor a page.
const OTHERS: [Route<'static>; 9] = [
    Route::Descriptor,
    Route::OpenApi,
    Route::RegistryEntry,
    Route::Docs,
    Route::Style,
    Route::CopyScript,
    Route::Health,
    Route::Ready,
    Route::Mcp,
];

/// How what is no route is called.
pub(super) const NONE: &str = "(none)";

/// Every name there is: a place for each route, and the last for what is none.
pub(super) fn names() -> Vec<&'static str> {
    let routes = ALL.iter().map(Route::Operation).chain(OTHERS).chain(Page::ALL.map(Route::Page));
    routes.map(|route| route.name()).chain([NONE]).collect()
}

/// The place of a route in [`names`].
pub(super) fn place(route: Option<Route<'_>>) -> usize {
    route.map_or(ALL.len() + OTHERS.len() + Page::ALL.len(), Route::place)
}

pub(super) fn open_to_all_origins(answer: &mut Answer) {
    answer.set(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    answer.set(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Retry-After, RateLimit, RateLimit-Policy, ETag, X-Request-Id"),
    );
}

/// What to say about a path that does not exist: the likely one if there is one, and where all of them are listed.
pub(super) fn not_found(path: &str) -> String {
    let bare = path.trim_end_matches('/').to_ascii_lowercase();
    let meant = ALL.iter().map(|operation| operation.spec.path).find(|known| {
        let name = known.trim_start_matches("/v1/");
        bare == *known || bare.trim_start_matches('/') == name || bare.trim_start_matches("/v1/") == name
    });
    match meant {
        Some(known) => format!("There is nothing at this path. Did you mean {known}?"),
        None => "There is nothing at this path. GET / lists the operations; /docs describes them.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_pointed_the_right_way() {
        for near in ["/v1/stats/", "/stats", "/V1/Stats"] {
            assert!(not_found(near).ends_with("Did you mean /v1/stats?"), "{near}");
        }
        assert!(not_found("/v2/pets").contains("/docs"));
    }

    #[test]
    fn every_route_is_at_the_place_of_its_name() {
        let names = names();
        let paths = [
            "/",
            "/openapi.json",
            "/server.json",
            "/docs",
            "/style.css",
            "/copy.js",
            "/healthz",
            "/readyz",
            "/mcp",
            "/join",
            "/joinusx",
            "/confirm/x",
            "/not-me/x",
            "/dev/mailbox",
            "/dev/mailbox/x",
            "/dev/mailbox/x/html",
        ];
        let paths: Vec<_> = ALL.iter().map(|operation| operation.spec.path).chain(paths).collect();
        assert_eq!(names.len(), paths.len() + 1);
        for (i, path) in paths.iter().enumerate() {
            let route = Route::find(path);
            assert_eq!((place(route), names[i]), (i, route.unwrap().name()), "{path}");
        }
        assert_eq!(names[place(None)], NONE);
    }
}
