//! The worked example of the seed, word for word: its modules, its persona and its user get the five tools that it names.

use axum::{
    Json, Router,
    routing::{get, post},
};
use serde_json::{Value, json};

use super::program::{Rack, client};

/// The seed's tools by module, with the level that each needs.
const TOOLS: [(&str, &[(&str, &str)]); 4] = [
    ("research", &[("web_search", "guest"), ("fetch_webpage", "guest")]),
    ("file_manager", &[("create_document", "guest"), ("delete_file", "user")]),
    ("code_executor", &[("run_python", "user"), ("run_shell", "admin")]),
    ("scheduler", &[("add_job", "admin")]),
];
/// What the seed's user gets under the seed's persona.
const RESULT: [&str; 5] = [
    "code_executor.run_python",
    "file_manager.create_document",
    "file_manager.delete_file",
    "research.fetch_webpage",
    "research.web_search",
];

/// A module of the seed. What it runs answers with its name and the call's.
async fn module(name: &'static str, tools: &[(&str, &str)]) -> String {
    let listed: Vec<Value> = tools
        .iter()
        .map(|(tool, level)| {
            json!({"name": format!("{name}.{tool}"), "description": "As in the seed.",
                   "required_permission": level, "parameters": []})
        })
        .collect();
    let manifest = json!({"name": name, "description": "A module.", "tools": listed});
    let routes = Router::new().route("/manifest", get(|| async { Json(manifest) })).route(
        "/execute",
        post(move |Json(call): Json<Value>| async move {
            let result = format!("the module {name}");
            Json(json!({"tool_name": call["tool_name"], "success": true, "result": result}))
        }),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

async fn seed(more: &str) -> Rack {
    let mut services = String::from("[module_services]\n");
    for (name, tools) in TOOLS {
        services += &format!("{name} = \"{}\"\n", module(name, tools).await);
    }
    Rack::new("", &(services + more))
}

fn listed(rack: &Rack, arguments: &[&str]) -> Vec<Value> {
    let listed = rack.done(&[&["tools", "list", "--json"], arguments].concat());
    serde_json::from_str(&listed).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_a_configured_module_owns_its_prefix() {
    let rack = seed("").await;
    rack.done(&["persona", "add", "assistant", "--modules", "research,file_manager,code_executor"]);
    rack.done(&["user", "add", "ada", "--persona", "assistant"]);
    let ((_, ada), server, client) = (rack.key("ada", &[]), rack.serve(), client());

    let answer: Value = client
        .get(format!("{}/api/tools", server.base))
        .bearer_auth(&ada)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let tools = answer["tools"].as_array().unwrap();
    let enabled: Vec<&str> = tools
        .iter()
        .filter(|tool| tool["enabled"] == true && tool["module"] != "local")
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(enabled, RESULT, "{answer:#}");
    for name in RESULT {
        let answer: Value = server.call(&client, &ada, name).await.json().await.unwrap();
        let module = name.split('.').next().unwrap();
        assert_eq!(answer["result"], format!("the module {module}"), "{name}: {answer}");
    }
    let refused: Value = server.call(&client, &ada, "code_executor.run_shell").await.json().await.unwrap();
    assert!(refused["error"].as_str().unwrap().contains("needs the level admin"), "{refused}");

    // Our own tools of those names are listed with what has taken their place.
    let rows = listed(&rack, &["--level", "owner"]);
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    let python = row("code_executor.run_python");
    assert!(python["source"].as_str().unwrap().starts_with("module code_executor at http://"), "{python}");
    assert!(python["replaces"].as_str().unwrap().contains("run_python.rs"), "{python}");
    let jobs = row("scheduler.list_jobs");
    assert_eq!(jobs["enabled"], false);
    assert!(
        jobs["reason"].as_str().unwrap().starts_with("replaced by the module scheduler at http"),
        "{jobs}"
    );
    assert!(!rack.done(&["tools", "check"]).contains("two tools are named"));
}

/// Its questions of "Permission denied" and of a tool that is not available, each answered by a command.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s15_the_persona_of_the_seed_and_its_debugging_questions() {
    let rack = seed("").await;
    // persona.allowed_modules = ["research", "file_manager", "code_executor"], user.permission_level = "user"
    rack.done(&["persona", "add", "assistant", "--modules", "research,file_manager,code_executor"]);
    rack.done(&["user", "add", "ada", "--level", "user", "--persona", "assistant"]);

    // get_tools_for_user(user_permission, allowed_modules)
    let tools = listed(&rack, &["--level", "user", "--persona", "assistant"]);
    let enabled = tools.iter().filter(|row| row["enabled"] == true).map(|row| row["name"].as_str().unwrap());
    assert_eq!(enabled.collect::<Vec<_>>(), RESULT, "{tools:#?}");

    // SELECT permission_level FROM users WHERE id = 'uuid';
    let users = rack.done(&["user", "list"]);
    let row = users.lines().find(|row| row.contains("ada")).unwrap();
    assert!(row.contains(" user ") && row.contains(" assistant "), "{users}");
    // SELECT allowed_modules FROM personas WHERE id = 'uuid';
    let shown = rack.done(&["persona", "show", "assistant"]);
    let line = |label: &str| shown.lines().find(|line| line.starts_with(label)).unwrap().to_owned();
    assert_eq!(line("modules"), "modules  code_executor, file_manager, research");
    assert_eq!(line("users"), "users    ada");

    let ((_, ada), server, client) = (rack.key("ada", &[]), rack.serve(), client());
    let error = async |tool: &str| -> String {
        let answer: Value = server.call(&client, &ada, tool).await.json().await.unwrap();
        answer["error"].as_str().unwrap_or_default().to_owned()
    };
    assert!(error("code_executor.run_shell").await.contains("it needs the level admin, ada has user"));
    assert!(error("scheduler.add_job").await.contains("it needs the level admin"));
    // Promote user, then update persona allowed_modules.
    rack.done(&["user", "promote", "ada", "admin"]);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(error("code_executor.run_shell").await, "");
    assert!(error("scheduler.add_job").await.contains("the module scheduler is not allowed"));
    rack.done(&["persona", "modules", "assistant", "research,file_manager,code_executor,scheduler"]);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(error("scheduler.add_job").await, "");
}
