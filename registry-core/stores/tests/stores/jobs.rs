//! Where the jobs of the schedule are kept: in every store alike.

use std::sync::Arc;

use futures_util::future::join_all;
use registry_core::{Caller, Permission};
use serde_json::json;
use toolrack_stores::schedule::{Job, Jobs, LastRun, MemoryJobs};

use crate::{Place, at, chains::tamper};

fn job(id: &str, tenant: &str, user: &str, next_run: &str) -> Job {
    let owner = Caller::new(user, Permission::Admin).only_modules(["local"]);
    Job {
        id: id.into(),
        tenant: tenant.into(),
        owner: Caller { via: Some("server".into()), ..owner },
        tool: "clean".into(),
        arguments: json!({"room": "\0 \u{fffd}"}).as_object().unwrap().clone(),
        cron: "0 9 * * *".into(),
        time_zone: "Europe/Oslo".into(),
        created_at: at("08:00:00.5"),
        next_run: at(next_run),
        last_run: None,
    }
}

async fn jobs_contract(jobs: &dyn Jobs) {
    assert_eq!(jobs.next().await.unwrap(), None);
    let [first, second, third] = [
        job("first", "default", "ada", "12:00:00"),
        job("second", "default", "ada", "11:00:00"),
        job("third", "other", "ada", "10:00:00"),
    ];
    for added in [&first, &second, &third] {
        assert!(jobs.add(added.clone(), 2).await.unwrap(), "{}", added.id);
    }
    // So many of one user in one tenant.
    assert!(!jobs.add(job("fourth", "default", "ada", "12:00:00"), 2).await.unwrap());
    assert!(jobs.add(job("fifth", "default", "bob", "13:00:00"), 2).await.unwrap());
    let ids = async |tenant: &str| -> Vec<String> {
        jobs.of_tenant(tenant).await.unwrap().into_iter().map(|job| job.id).collect()
    };
    assert_eq!(ids("default").await, ["second", "first", "fifth"]);
    assert_eq!(jobs.of_tenant("other").await.unwrap(), std::slice::from_ref(&third));

    assert_eq!(jobs.next().await.unwrap(), Some(at("10:00:00")));
    assert_eq!(jobs.due(at("09:59:59"), 10).await.unwrap(), []);
    assert_eq!(jobs.due(at("11:00:00"), 10).await.unwrap(), [third.clone(), second.clone()]);
    assert_eq!(jobs.due(at("23:00:00"), 1).await.unwrap(), std::slice::from_ref(&third));

    // It is whoever's comes first.
    let claims = join_all((0..8).map(|_| jobs.claim(&third, at("20:00:00")))).await;
    assert_eq!(claims.into_iter().filter(|claim| *claim == Ok(true)).count(), 1);
    assert!(!jobs.claim(&third, at("21:00:00")).await.unwrap());
    let run = |success| LastRun {
        call_id: "job-third-1".into(),
        at: at("10:00:01"),
        success,
        error: (!success).then(|| "\0 no".to_owned()),
    };
    jobs.ended(&third, run(true)).await.unwrap();
    jobs.ended(&third, run(false)).await.unwrap();
    let third = Job { next_run: at("20:00:00"), last_run: Some(run(false)), ..third };
    assert_eq!(jobs.of_tenant("other").await.unwrap(), std::slice::from_ref(&third));

    for (tenant, id) in [("default", "third"), ("other", "first"), ("other", ""), ("other", "third\0")] {
        assert!(!jobs.remove(tenant, id).await.unwrap(), "{tenant} {id}");
    }
    assert!(jobs.remove("other", "third").await.unwrap());
    assert!(!jobs.remove("other", "third").await.unwrap());
    assert!(!jobs.claim(&third, at("21:00:00")).await.unwrap());
    jobs.ended(&third, run(true)).await.unwrap();
    assert_eq!(ids("other").await, [""; 0]);
}

#[tokio::test]
async fn b10_every_store_keeps_jobs_alike() {
    jobs_contract(&MemoryJobs::default()).await;
    for place in Place::all("b10_every_store_keeps_jobs_alike") {
        jobs_contract(&place.open("main").await).await;
        // They outlive the process.
        assert_eq!(place.open("main").await.of_tenant("default").await.unwrap().len(), 3);
    }
}

#[tokio::test]
async fn b10_of_two_servers_one_has_the_job() {
    for place in Place::all("b10_of_two_servers_one_has_the_job") {
        let servers = [Arc::new(place.open("one").await), Arc::new(place.open("two").await)];
        let [one, _] = &servers;
        for number in 0..20 {
            let job = job(&format!("job-{number}"), "default", "ada", "10:00:00");
            assert!(one.add(job, 20).await.unwrap());
        }
        let take_all = |server: Arc<toolrack_stores::SqlStore>| async move {
            let mut taken = 0;
            for job in server.due(at("11:00:00"), 100).await.unwrap() {
                taken += usize::from(server.claim(&job, at("12:00:00")).await.unwrap());
            }
            taken
        };
        let taken = join_all(servers.map(take_all)).await;
        assert_eq!(taken.iter().sum::<usize>(), 20, "{taken:?}");
    }
}

#[tokio::test]
async fn b10_a_job_that_cannot_be_read_keeps_none_of_the_others_waiting() {
    for place in Place::all("b10_a_job_that_cannot_be_read_keeps_none_of_the_others_waiting") {
        let store = place.open("main").await;
        tamper(
            &place,
            "INSERT INTO jobs (tenant, id, user_id, next_run, last_run, document) VALUES
             ('default', 'a', 'ada', 1, '', '{}'), ('default', 'b', 'ada', 2, '', 'no JSON')",
        )
        .await;
        let readable = job("c", "default", "ada", "10:00:00");
        assert!(store.add(readable.clone(), 10).await.unwrap());
        // Two at a time, and the two that come first cannot be read.
        assert_eq!(store.due(at("11:00:00"), 2).await.unwrap(), []);
        assert_eq!(store.due(at("11:00:00"), 2).await.unwrap(), [readable]);
        assert_eq!(store.next().await.unwrap(), Some(at("10:00:00")));
    }
}
