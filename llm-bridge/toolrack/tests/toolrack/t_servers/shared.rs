//! Two servers on one PostgreSQL and one Redis.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, future::join_all, stream};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use super::{
    program::{Rack, away_from_midnight, client, mock, within_a_second},
    servers::{free_port, postgres, redis, redis_on},
};

/// The seconds that `Retry-After` says.
fn retry_after(response: &Response) -> u64 {
    response.headers()["retry-after"].to_str().unwrap().parse().unwrap()
}

/// Two servers on one PostgreSQL and one Redis.
fn two_racks(url: &str, redis: &str, tools: &str) -> [Rack; 2] {
    ["one", "two"].map(|server| {
        let store = format!("url = \"{url}\"\nredis = \"{redis}\"\nserver = \"{server}\"");
        Rack::new(&store, tools)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b10_two_servers_are_as_one() {
    let test = "b10_two_servers_are_as_one";
    let Some(redis) = redis(test) else { return };
    let Some(postgres) = postgres(test) else { return };
    away_from_midnight().await;
    let tools = mock("count.thrice", "daily_limit = 3")
        + &mock("count.free", "")
        + &mock("count.admins", "permission = \"admin\"");
    let [one, two] = two_racks(&postgres, &redis.url, &tools);
    one.done(&["user", "add", "ada"]);
    two.done(&["user", "add", "root", "--level", "admin"]);
    let ((ada_id, ada), (_, root)) = (one.key("ada", &[]), two.key("root", &[]));
    let (servers, client) = ([one.serve(), two.serve()], client());

    // 200 calls at once, while a third process writes to a chain that a server writes to.
    let begins = Instant::now();
    let other = {
        let calls = [1, 2].map(|n| format!("{{\"n\": {n}}}"));
        let one = one.twin();
        tokio::task::spawn_blocking(move || calls.map(|call| one.done(&["call", "count.free", &call])))
    };
    let answers = join_all((0..200).map(|call| servers[call % 2].call(&client, &ada, "count.thrice"))).await;
    let took = begins.elapsed();
    let (ran, over): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status() == StatusCode::OK);
    assert_eq!((ran.len(), over.len()), (3, 197));
    for answer in &over {
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        assert!((1..=86_400).contains(&retry_after(answer)));
    }
    for answer in ran {
        assert_eq!(answer.json::<Value>().await.unwrap()["result"], "done");
    }
    for reply in other.await.unwrap() {
        assert_eq!(serde_json::from_str::<Value>(&reply).unwrap()["success"], true);
    }

    // What is switched on one is switched on the other.
    let free = |server: usize| {
        let (servers, client, ada) = (&servers, &client, &ada);
        async move {
            let answer = servers[server].call(client, ada, "count.free").await;
            assert_eq!(answer.status(), StatusCode::OK);
            answer.json::<Value>().await.unwrap()["success"] == true
        }
    };
    assert!(free(0).await && free(1).await);
    one.done(&["tools", "disable", "count.free"]);
    let mut waits = Vec::new();
    for server in [0, 1] {
        waits.push(within_a_second("switched off", || async { !free(server).await }).await);
    }
    let on = json!({"enabled": true});
    let refused = servers[1].post(&client, "/api/tools/count.free", &ada, &on).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let switched = servers[1].post(&client, "/api/tools/count.free", &root, &on).send().await.unwrap();
    assert_eq!(switched.status(), StatusCode::OK);
    waits.push(within_a_second("switched on", || free(0)).await);
    assert!(free(1).await);

    // Who is promoted on one, or has his key taken, is so on the other.
    let status = |server: usize, tool: &'static str| {
        let (servers, client, ada) = (&servers, &client, &ada);
        async move { servers[server].call(client, ada, tool).await.status() }
    };
    assert_eq!(status(1, "count.admins").await, StatusCode::FORBIDDEN);
    one.done(&["user", "promote", "ada", "admin"]);
    for server in [1, 0] {
        let promoted = || async { status(server, "count.admins").await == StatusCode::OK };
        waits.push(within_a_second("promoted", promoted).await);
    }
    one.done(&["key", "revoke", &ada_id]);
    for server in [1, 0] {
        let revoked = || async { status(server, "count.free").await == StatusCode::UNAUTHORIZED };
        waits.push(within_a_second("revoked", revoked).await);
    }

    let chains = two.verified();
    assert_eq!(chains.iter().map(|(server, _)| server.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(chains.iter().map(|(_, records)| *records as usize).sum::<usize>(), one.export(&[]).len());
    let records = two.export(&["--tool", "count.thrice"]);
    let intents = records.iter().filter(|record| record["phase"] == "intent").count();
    let refused = records.iter().filter(|record| record["error"] == "tool_rate_limited").count();
    assert_eq!((records.len(), intents, refused), (203, 3, 197));
    println!("200 calls in {took:.1?}: 3 ran; changes seen after {waits:.0?}; chains {chains:?}");
}

/// Redis is killed after a third of the calls and is back after two thirds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t3_without_redis_no_call_is_lost_and_none_too_many_runs() {
    const LIMIT: usize = 20;
    const EACH: usize = 60;
    const GROUPS: usize = 10;
    const IN_GROUP: usize = 4;
    let test = "t3_without_redis_no_call_is_lost_and_none_too_many_runs";
    let port = free_port();
    let Some(first) = redis_on(test, port) else { return };
    let Some(postgres) = postgres(test) else { return };
    away_from_midnight().await;
    let tools = mock("count.twenty", &format!("daily_limit = {LIMIT}"));
    let [one, two] = two_racks(&postgres, &format!("redis://127.0.0.1:{port}/0"), &tools);
    for rack in [&one, &two] {
        rack.top("default_guest_modules = \"count\"");
    }
    one.done(&["user", "add", "hop"]);
    let (_, hop) = one.key("hop", &["--delegate"]);
    let (mut servers, client) = ([one.serve(), two.serve()], client());

    // The users come in groups, so that at every moment some have calls left and some do not.
    let all = GROUPS * IN_GROUP * EACH;
    let answered = AtomicUsize::new(0);
    let began = Instant::now();
    let calls = stream::iter(0..all).map(|call| {
        let (servers, client, hop, answered) = (&servers, &client, &hop, &answered);
        async move {
            let user = format!("user {}", call / (IN_GROUP * EACH) * IN_GROUP + call % IN_GROUP);
            let body = json!({"tool_name": "count.twenty", "arguments": {"n": call}, "user_id": &user});
            let asked = Instant::now();
            // Whether a user's calls meet both servers must not hang on the number of users.
            let server = &servers[call / IN_GROUP % 2];
            let answer = server.post(client, "/execute", hop, &body).send().await.expect("an answer");
            let status = answer.status();
            let reply: Value = answer.json().await.expect("a whole answer");
            answered.fetch_add(1, Ordering::SeqCst);
            (user, status, reply, asked.elapsed())
        }
    });
    let reaches = |count: usize| {
        let answered = &answered;
        async move {
            while answered.load(Ordering::SeqCst) < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    };
    let accident = async {
        reaches(all / 3).await;
        drop(first);
        let killed = answered.load(Ordering::SeqCst);
        reaches(2 * all / 3).await;
        let again = redis_on(test, port);
        (again, killed, answered.load(Ordering::SeqCst))
    };
    let (answers, (_again, killed, back)) =
        tokio::join!(calls.buffer_unordered(32).collect::<Vec<_>>(), accident);
    let took = began.elapsed();

    let (mut ran, mut slowest) = (BTreeMap::<String, usize>::new(), Duration::ZERO);
    for (user, status, reply, waited) in answers {
        slowest = slowest.max(waited);
        match status {
            StatusCode::OK => {
                assert_eq!(reply["result"], "done", "{reply}");
                *ran.entry(user).or_default() += 1;
            }
            status => assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{reply}"),
        }
    }
    assert_eq!(ran.len(), GROUPS * IN_GROUP);
    assert!(ran.values().all(|calls| *calls == LIMIT), "{ran:?}");
    assert!(slowest < Duration::from_secs(10), "nobody waits long for a Redis that is gone: {slowest:?}");

    // Both go on, and find Redis again by themselves.
    let began = Instant::now();
    let mut more = 0;
    loop {
        assert!(began.elapsed() < Duration::from_secs(10), "{}{}", servers[0].log(), servers[1].log());
        for server in &servers {
            for (user, status) in [("user 0", StatusCode::TOO_MANY_REQUESTS), ("somebody", StatusCode::OK)] {
                let user = if user == "somebody" { format!("{user} {more}") } else { user.to_owned() };
                let body = json!({"tool_name": "count.twenty", "user_id": &user});
                let answer = server.post(&client, "/execute", &hop, &body).send().await.unwrap();
                assert_eq!(answer.status(), status, "{user}");
                more += 1;
            }
        }
        if servers.iter().all(|server| server.log().contains("redis_back")) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let found = began.elapsed();
    for server in &mut servers {
        assert!(server.runs() && server.log().contains("redis_gone"), "{}", server.log());
    }
    // One record of each call, and one more of each that ran.
    one.verified();
    assert_eq!(one.exported_calls(&[]).len(), all + GROUPS * IN_GROUP * LIMIT + more + more / 2);
    println!(
        "{all} calls in {took:.1?}, without Redis from {killed} to {back}: {LIMIT} of {EACH} ran for each of {} users, \
         the slowest answer took {slowest:.1?}, Redis was found again {found:.1?} after the last",
        ran.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u29_a_turn_is_seen_and_stopped_from_another_server() {
    let Some(url) = postgres("u29_a_turn_is_seen_and_stopped_from_another_server") else { return };
    let tools = "[[tools]]\nname = \"erase_note\"\ndescription = \"Erases a note for good.\"\ntype = \"function\"\nhandler = \"fixed\"\n\
                 permission = \"guest\"\neffect = \"destructive\"\nparameters = { type = \"object\", properties = { title = { type = \"string\" } }, required = [\"title\"] }\n\
                 implementation = { type = \"mock\", mock_response = \"The note is gone.\" }\n";
    let [one, two] =
        ["one", "two"].map(|server| Rack::new(&format!("url = \"{url}\"\nserver = \"{server}\""), tools));
    one.done(&["user", "add", "ada"]);
    one.done(&["user", "add", "root", "--level", "admin"]);
    let ((_, ada), (_, root)) = (one.key("ada", &[]), one.key("root", &[]));
    let ([first, second], client) = ([one.serve(), two.serve()], client());
    let question = json!({"stream": true, "approval_wait_seconds": 120, "messages": [{"role": "user", "content": "Erase the note \"milk\"."}]});
    let asked = first.post(&client, "/v1/chat/completions", &ada, &question);
    let answer = tokio::spawn(async move { asked.send().await.unwrap().text().await.unwrap() });
    let turns = async || -> Vec<Value> {
        let listed =
            client.get(format!("{}/api/turns", second.base)).bearer_auth(&root).send().await.unwrap();
        listed.json::<Value>().await.unwrap()["turns"].as_array().unwrap().clone()
    };
    let began = Instant::now();
    let seen = loop {
        assert!(began.elapsed() < Duration::from_secs(30), "the turn is not seen");
        match turns().await.into_iter().find(|turn| turn["tools"] == json!(["erase_note"])) {
            Some(turn) => break turn,
            None => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    };
    assert_eq!((&seen["server"], &seen["user"]), (&json!("one"), &json!("ada")), "{seen}");
    let id = seen["id"].as_str().unwrap();
    let stop = client.delete(format!("{}/api/turns/{id}?server=one", second.base)).bearer_auth(&root);
    assert_eq!(stop.send().await.unwrap().status(), StatusCode::NO_CONTENT);
    let answer = tokio::time::timeout(Duration::from_secs(30), answer).await.unwrap().unwrap();
    assert!(answer.contains("an admin has stopped this turn"), "{answer}");
    let began = Instant::now();
    while !turns().await.is_empty() {
        assert!(began.elapsed() < Duration::from_secs(30), "the turn is still told");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for server in [first, second] {
        server.end();
    }
    let records = two.export(&["--only", "success"]);
    let stopped = records.iter().find(|record| record["tool"] == "turns.stop").unwrap();
    assert_eq!((&stopped["user"], &stopped["arguments"]["server"]), (&json!("root"), &json!("one")));
}
