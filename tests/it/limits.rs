//! The limits as a client meets them.

use crate::prelude::*;

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

const MINUTE: Duration = Duration::from_secs(60);

/// The requests of one budget, and between which times each was counted: after it was sent and before it was answered. So its
/// answers can be held to the limit however fast or slow this machine is.
#[derive(Debug)]
pub(crate) struct Tally {
    limit: usize,
    admitted: Vec<(Instant, Instant)>,
    refused: Vec<(Instant, Instant)>,
}

impl Tally {
    pub(crate) fn of(limit: usize) -> Self {
        Self { limit, admitted: Vec::new(), refused: Vec::new() }
    }

    /// Waits for one more request; `is_admitted` tells the answers apart.
    pub(crate) async fn note<T>(
        &mut self,
        request: impl Future<Output = T>,
        is_admitted: impl FnOnce(&T) -> bool,
    ) -> T {
        let sent = Instant::now();
        let answer = request.await;
        let times = (sent, Instant::now());
        if is_admitted(&answer) {
            self.admitted.push(times);
        } else {
            self.refused.push(times);
        }
        answer
    }

    /// One more request to a single node, whose answer must be right.
    pub(crate) async fn ask(&mut self, request: impl Future<Output = Answer>) -> Answer {
        let answer = self.note(request, |answer| answer.status == 200).await;
        assert!(answer.status == 200 || answer.status == 429, "{answer:?}");
        self.holds();
        answer
    }

    /// Spends what is left of the budget; gives the refusal. Where a request takes so long that some is left again, it goes on,
    /// but not for ever.
    pub(crate) async fn ask_until_refused(&mut self, mut request: impl AsyncFnMut(usize) -> Answer) -> Answer {
        let many = 10 * (self.limit + 1);
        for i in 0..many {
            let answer = self.ask(request(i)).await;
            if answer.status == 429 {
                return answer;
            }
        }
        panic!("none of {many} requests was refused, with a limit of {} a minute", self.limit);
    }

    /// Looks no more at what was refused so far: by another count than this one.
    pub(crate) fn forget_refusals(&mut self) {
        self.refused.clear();
    }

    /// How many were admitted within one minute, whenever in their times they were counted.
    pub(crate) fn most_in_a_minute(&self) -> usize {
        let until = |(_, answered): &(Instant, Instant)| {
            self.admitted.iter().filter(|(sent, other)| other <= answered && *answered - *sent <= MINUTE).count()
        };
        self.admitted.iter().map(until).max().unwrap_or(0)
    }

    /// How many at the least may still have counted when one was refused.
    pub(crate) fn fewest_at_a_refusal(&self) -> Option<usize> {
        let before = |(sent, _): &(Instant, Instant)| {
            self.admitted.iter().filter(|(_, answered)| answered <= sent && *sent - *answered <= MINUTE).count()
        };
        self.refused.iter().map(before).min()
    }

    /// Neither more nor less than the limit, of requests that were sent one after another.
    #[track_caller]
    pub(crate) fn holds(&self) {
        let (most, limit) = (self.most_in_a_minute(), self.limit);
        assert!(most <= limit, "{most} within a minute, and the limit is {limit}");
        let fewest = self.fewest_at_a_refusal().unwrap_or(limit);
        assert!(fewest >= limit, "refused when {fewest} counted, and the limit is {limit}");
    }

    /// The last refusal told to wait until the oldest that counted is a minute old, in whole seconds.
    #[track_caller]
    fn holds_wait(&self, refusal: &Answer) {
        let (sent, answered) = self.refused[self.refused.len() - 1];
        let oldest = self.admitted[self.admitted.len() - self.limit];
        let seconds = |span: Duration| span.as_secs() + u64::from(span.subsec_nanos() > 0);
        let least = seconds(MINUTE.saturating_sub(answered - oldest.0)).max(1);
        // Times are cut to whole microseconds.
        let most = seconds(MINUTE.saturating_sub(sent - oldest.1) + Duration::from_micros(2)).min(60);
        let wait: u64 = refusal.header("retry-after").parse().unwrap();
        assert!((least..=most).contains(&wait), "{wait} s, and {least} to {most} would be right");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_public_requests_a_minute_for_an_address_shared_by_the_three() {
    let server = Server::start();
    let paths = ["/v1/stats", "/v1/negotiate-categories", "/v1/referral-program"];
    let (mut connection, mut tally) = (server.connect(HERE).await, Tally::of(60));
    let over = tally.ask_until_refused(async |i| connection.send(Request::get(paths[i % 3]), "").await).await;
    over.refused(429, "rate_limited");
    tally.holds_wait(&over);
    let other = server.send_from(Ipv4Addr::new(127, 0, 0, 2), Request::get("/v1/stats"), "").await;
    assert_eq!(other.header("ratelimit-policy"), "\"public\";q=60;w=60");
    assert_eq!(other.header("ratelimit"), "\"public\";r=59;t=60", "another address is not touched");
    // What needs no limit stays up for the one who is over it.
    server.get("/").await.good();
    assert_eq!(server.get("/openapi.json").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_actions_a_minute_for_a_key_and_its_reads_apart() {
    let server = Server::start();
    let (key, other) = (server.key(), server.run(&["keys", "issue", "Other", "--per-minute", "2"]));
    let act = async |key: &str, i: usize| -> Answer {
        let path = if i.is_multiple_of(2) { "/v1/invite" } else { "/v1/referral-link" };
        server.post(path, key, sign_up(&format!("ana{i}@example.com"))).await
    };
    for (key, limit) in [(&key, 30), (&other, 2)] {
        let over = Tally::of(limit).ask_until_refused(async |i| act(key, i).await).await;
        over.refused(429, "rate_limited");
    }

    let mut connection = server.connect(HERE).await;
    let read = || Request::get("/v1/stats").header("authorization", format!("Bearer {key}"));
    // A key's reads are a budget of their own.
    Tally::of(60).ask_until_refused(async |_| connection.send(read(), "").await).await;
    assert_eq!(server.get("/v1/stats").await.header("ratelimit"), "\"public\";r=59;t=60", "and not the address's");
    // A missing or wrong key is never told to wait.
    for _ in 0..70 {
        server.post("/v1/invite", "wrong", "").await.refused(401, "agent_unauthorized");
    }
}

mod once {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn forwarded_addresses_count_only_from_trusted_proxies() {
        let forwarded = |client: usize| {
            Request::get("/v1/stats").header("x-forwarded-for", format!("1.2.3.4, 203.0.113.{client}, 127.0.0.9"))
        };
        let server = Server::start_with(&["--public-per-minute", "10", "--trusted-proxies", "127.0.0.0/8,10.0.0.1"]);
        let mut connection = server.connect(HERE).await;
        for client in [0, 1] {
            Tally::of(10).ask_until_refused(async |_| connection.send(forwarded(client), "").await).await;
        }

        let server = Server::start_with(&["--public-per-minute", "10", "--trusted-proxies", "10.0.0.0/8"]);
        let mut connection = server.connect(HERE).await;
        // A stranger's header is ignored.
        Tally::of(10).ask_until_refused(async |i| connection.send(forwarded(i % 2), "").await).await;
    }

    mod long {
        use super::*;

        /// More addresses than the table holds, through the real server: it stays within the stated size and still counts.
        #[tokio::test(flavor = "multi_thread")]
        async fn a_flood_of_addresses_does_not_grow_the_server() {
            needs!(LongRun);
            use unionhall::limiter::Class;
            use unionhall::limiter::memory::MemoryLimiter;
            const FLOOD: u32 = 120_000;
            assert!(MemoryLimiter::new(60).network_entries(Class::Public) < FLOOD as usize);
            let server = Server::start_with(&["--trusted-proxies", "127.0.0.0/8", "--log", "off"]);
            let before = resident(server.id());
            let flood = async |first: u32, count: u32| {
                let mut clients = tokio::task::JoinSet::new();
                for part in 0..4 {
                    let mut connection = server.connect(HERE).await;
                    clients.spawn(async move {
                        for i in 0..count / 4 {
                            let address = Ipv4Addr::from(first + part * FLOOD + i);
                            let request =
                                Request::head("/v1/referral-program").header("x-forwarded-for", address.to_string());
                            assert_eq!(connection.send(request, "").await.status, 200);
                        }
                    });
                }
                clients.join_all().await;
            };
            flood(0x0b00_0000, FLOOD).await;
            // Somebody reaches their limit while the table is full, and more come. The one at its limit is not dropped: what was
            // admitted would be forgotten, and the tally would not hold.
            let mut tally = Tally::of(60);
            for part in 0..8 {
                tally.ask_until_refused(async |_| server.get("/v1/stats").await).await;
                flood(0x0c00_0000 + part * FLOOD / 64, FLOOD / 64).await;
            }
            tally.ask_until_refused(async |_| server.get("/v1/stats").await).await;
            let grown = resident(server.id()).saturating_sub(before);
            assert!(grown <= MemoryLimiter::NETWORK_BYTES, "{} MiB", grown >> 20);
        }
    }
}
