//! `toolrack documents …`, and the tools that search what it added.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

fn toolrack(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOOLRACK_")) {
        command.env_remove(name);
    }
    command.args(arguments).current_dir(folder).output().unwrap()
}

/// What a run printed and reported, and whether it went well.
fn run(folder: &Path, arguments: &[&str]) -> (String, String, bool) {
    let output = toolrack(folder, arguments);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.success())
}

fn folder_with_documents() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("drinks")).unwrap();
    for (name, text) in [
        ("drinks/tea.md", "# Tea\n\n## Green\n\nGreen tea is steeped at 75 degrees.\n"),
        ("drinks/coffee.html", "<title>Coffee</title><h1>Coffee</h1><p>Espresso needs pressure.</p>"),
        ("drinks/.hidden.md", "# Hidden\n"),
        ("drinks/image.png", "no text"),
        ("prices.csv", "drink,price\nespresso,2\n"),
        ("bad.pdf", "no pdf"),
        ("toolrack.toml", "upstream = \"demo\"\n"),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[test]
fn p6_one_bad_file_does_not_stop_the_others() {
    let folder = folder_with_documents();
    let at = folder.path();
    let (_, reported, well) = run(at, &["documents", "add", "drinks", "bad.pdf", "prices.csv", "none.md"]);
    assert!(!well, "{reported}");
    for line in [
        "skipped drinks/.hidden.md: it is hidden",
        "cannot add bad.pdf: it is no PDF",
        "cannot add none.md: ",
        "3 added, 0 updated, 0 unchanged, 2 failed",
        "1 file of other kinds skipped",
    ] {
        assert!(reported.contains(line), "{line}: {reported}");
    }
    let (_, reported, well) = run(at, &["documents", "add", "drinks", "prices.csv"]);
    assert!(well && reported.contains("0 added, 0 updated, 3 unchanged, 0 failed"), "{reported}");
    fs::write(at.join("prices.csv"), "drink,price\nespresso,3\n").unwrap();
    let (_, reported, _) = run(at, &["documents", "add", "drinks", "prices.csv"]);
    assert!(reported.contains("0 added, 1 updated, 2 unchanged, 0 failed"), "{reported}");
    assert!(at.join(".toolrack/documents.db").exists());
}

#[test]
fn p6_documents_are_listed_searched_and_removed() {
    let folder = folder_with_documents();
    let at = folder.path();
    let (_, reported, well) = run(at, &["documents", "list"]);
    assert!(!well && reported.contains("toolrack documents add PATH"), "{reported}");
    assert!(run(at, &["documents", "add", "drinks", "prices.csv"]).2);
    let (printed, reported, _) = run(at, &["documents", "list", "drinks"]);
    assert!(
        printed.contains("tea.md") && !printed.contains("prices.csv") && reported.contains("2 documents"),
        "{printed}"
    );
    let (printed, _, well) = run(at, &["documents", "search", "how hot is", "green tea?"]);
    assert!(
        well && printed.contains("tea.md, line 5: Tea > Green") && printed.contains("75 degrees"),
        "{printed}"
    );
    let (_, reported, well) = run(at, &["documents", "search", "zebra"]);
    assert!(!well && reported.contains("nothing was found"), "{reported}");
    // The file itself need not be there any more.
    fs::remove_file(at.join("drinks/tea.md")).unwrap();
    let (_, reported, well) = run(at, &["documents", "remove", "drinks/tea.md", "nowhere"]);
    assert!(
        !well && reported.contains("removed ") && reported.contains("there is no document nowhere"),
        "{reported}"
    );
    let (_, reported, well) = run(at, &["documents", "remove", "."]);
    assert!(well && reported.matches("removed ").count() == 2, "{reported}");
}

#[test]
fn u29_documents_that_were_added_and_removed_are_in_the_audit() {
    let folder = folder_with_documents();
    let at = folder.path();
    assert!(run(at, &["documents", "add", "drinks", "prices.csv"]).2);
    assert!(run(at, &["documents", "add", "--prune", "drinks"]).2);
    assert!(!run(at, &["documents", "remove", "drinks", "nowhere"]).2);
    let (printed, _, well) = run(at, &["audit", "export"]);
    assert!(well, "{printed}");
    let records = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["record"].take());
    let made = records.filter(|record| record["phase"] == "outcome");
    let made: Vec<Value> = made
        .map(|record| serde_json::json!([record["tool"], record["arguments"]["paths"], record["success"]]))
        .collect();
    let of = |name: &str| at.canonicalize().unwrap().join(name).to_str().unwrap().to_owned();
    // What is not there was not removed.
    assert_eq!(
        Value::from(made),
        serde_json::json!([
            ["toolrack documents add", [of("drinks"), of("prices.csv")], true],
            ["toolrack documents add --prune", [of("drinks")], true],
            ["toolrack documents remove", [of("drinks")], true],
        ])
    );
}

#[test]
fn p6_the_tools_are_on_once_there_are_documents() {
    let folder = folder_with_documents();
    let at = folder.path();
    fs::write(at.join("toolrack.toml"), "upstream = \"demo\"\n[documents]\nfile = \"kept/here.db\"\n")
        .unwrap();
    let (printed, _, _) = run(at, &["tools", "list", "--json"]);
    assert!(printed.contains("needs Documents: there are none yet"), "{printed}");
    let (printed, _, well) = run(at, &["call", "retrieve_documents", "{\"query\": \"tea\"}"]);
    assert!(!well && printed.contains("toolrack documents add"), "{printed}");
    assert!(!at.join("kept").exists(), "looking leaves nothing behind");

    assert!(run(at, &["documents", "add", "drinks"]).2);
    assert!(at.join("kept/here.db").exists());
    let (printed, _, _) = run(at, &["tools", "list", "--json"]);
    assert!(!printed.contains("needs Documents"), "{printed}");
    let (printed, _, _) = run(
        at,
        &["call", "retrieve_documents", "{\"query\": \"espresso\", \"filter\": {\"kind\": \"html\"}}"],
    );
    let reply: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(reply["result"]["passages"][0]["section"], "Coffee", "{printed}");
    let (printed, _, _) = run(
        at,
        &["call", "query_documents_metadata", "{\"sql\": \"SELECT kind FROM documents ORDER BY 1\"}"],
    );
    let reply: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(reply["result"]["rows"], serde_json::json!([["html"], ["markdown"]]), "{printed}");
}

#[test]
fn p6_what_was_added_outlives_a_program_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir(at.join("many")).unwrap();
    for number in 0..400 {
        let text =
            format!("# Number {number}\n\n{}\n", "Toolrack uses SQLite. Words of a text. ".repeat(100));
        fs::write(at.join(format!("many/{number}.md")), text).unwrap();
    }
    let listed = || run(at, &["documents", "list"]).0.matches(".md").count();
    let mut adding = Command::new(env!("CARGO_BIN_EXE_toolrack"))
        .args(["documents", "add", "many", "--data-dir", ".toolrack"])
        .current_dir(at)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while listed() == 0 {
        assert!(adding.try_wait().unwrap().is_none_or(|ended| ended.success()));
    }
    let before = listed();
    adding.kill().unwrap();
    adding.wait().unwrap();
    let after = listed();
    assert!(before > 0 && after >= before, "{before} {after}");
    let (_, reported, well) = run(at, &["documents", "add", "many"]);
    assert!(
        well && reported.contains(&format!("{} added, 0 updated, {after} unchanged", 400 - after)),
        "{after}: {reported}"
    );
    let (printed, _, _) = run(at, &["documents", "search", "number 399"]);
    assert!(printed.contains("399.md"), "{printed}");
}

#[test]
fn p6_a_tenant_has_documents_of_its_own() {
    let folder = folder_with_documents();
    let at = folder.path();
    assert!(run(at, &["documents", "add", "drinks"]).2);
    assert!(run(at, &["documents", "--tenant", "acme", "add", "prices.csv"]).2);
    let (printed, reported, _) = run(at, &["documents", "list", "--tenant", "acme"]);
    assert!(printed.contains("prices.csv") && reported.contains("1 document"), "{printed} {reported}");
    let (printed, _, _) = run(at, &["documents", "list"]);
    assert!(printed.contains("tea.md") && !printed.contains("prices.csv"), "{printed}");
    for (tenant, found, other) in [("acme", "prices", "Coffee"), ("default", "Coffee", "prices")] {
        let (printed, _, _) =
            run(at, &["call", "--tenant", tenant, "retrieve_documents", "{\"query\": \"espresso\"}"]);
        assert!(printed.contains(found) && !printed.contains(other), "{tenant}: {printed}");
    }
    let (_, reported, well) = run(at, &["documents", "list", "--tenant", "other"]);
    assert!(!well && reported.contains("there are no documents yet"), "{reported}");
    let files = fs::read_dir(at.join(".toolrack/documents.tenants")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.ends_with(".db")).count(), 1, "looking leaves nothing behind");
    let (_, reported, well) = run(at, &["documents", "list", "--tenant", "*"]);
    assert!(!well && reported.contains("every tenant"), "{reported}");
}

/// A PDF with one page, which draws the object X beside its text.
pub(crate) fn pdf(text: &str, x: &str) -> String {
    let content = format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET /X Do");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Count 1 /Kids [4 0 R] >>".to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> /XObject << /X 6 0 R >> >> /Contents 5 0 R >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        format!("<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 6 0 R >> >> /Length {} >>\nstream\n{x}\nendstream", x.len()),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = String::new();
    for (object, number) in objects.iter().zip(1..) {
        places.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{number} 0 obj\n{object}\nendobj\n"));
    }
    let start = file.len();
    file + &format!(
        "xref\n0 7\n0000000000 65535 f \n{places}trailer\n<< /Size 7 /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    )
}

#[test]
fn p6_a_pdf_that_draws_itself_within_itself_ends_nothing_but_its_own_reader() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("self.pdf"), pdf("Green tea.", "/X Do")).unwrap();
    fs::write(at.join("tea.pdf"), pdf("Green tea.", "q Q")).unwrap();
    let (_, reported, well) = run(at, &["documents", "add", "self.pdf", "tea.pdf"]);
    assert!(!well && reported.contains("cannot add self.pdf: this PDF cannot be read"), "{reported}");
    assert!(reported.contains("1 added, 0 updated, 0 unchanged, 1 failed"), "{reported}");
    let (found, _, _) = run(at, &["documents", "search", "green tea"]);
    assert!(found.contains("tea.pdf, page 1"), "{found}");
}

#[test]
fn t8_a_tenants_files_and_notes_are_in_folders_of_its_own() {
    let folder = folder_with_documents();
    let at = folder.path();
    for tenant in ["default", "acme", "../acme"] {
        let of = |tool: &str, arguments: &str| run(at, &["call", "--tenant", tenant, tool, arguments]);
        let arguments = format!(r#"{{"path": "plan.md", "content": "plan of {tenant}"}}"#);
        let (printed, _, well) = of("file_manager.create_document", &arguments);
        assert!(well, "{tenant}: {printed}");
        assert!(of("claim", &format!(r#"{{"assertion": "of {tenant}"}}"#)).2);
        assert!(!of("file_manager.create_document", &arguments).2, "there is one already");
    }
    let data = at.join(".toolrack");
    let folders = |of: &str| -> Vec<std::path::PathBuf> {
        let others = fs::read_dir(data.join(of).with_extension("tenants")).unwrap();
        others.map(|entry| entry.unwrap().path()).chain([data.join(of)]).collect()
    };
    let mut plans: Vec<String> =
        folders("files").iter().map(|folder| fs::read_to_string(folder.join("plan.md")).unwrap()).collect();
    plans.sort();
    assert_eq!(plans, ["plan of ../acme", "plan of acme", "plan of default"]);
    for inbox in folders("inbox") {
        assert_eq!(fs::read_dir(inbox.join("claims")).unwrap().count(), 1, "{inbox:?}");
    }
}

#[test]
fn p6_what_is_gone_from_a_folder_is_removed_where_that_is_asked_for() {
    let folder = folder_with_documents();
    let at = folder.path();
    assert!(run(at, &["documents", "add", "drinks", "prices.csv"]).2);
    fs::rename(at.join("drinks/tea.md"), at.join("drinks/green.md")).unwrap();
    fs::remove_file(at.join("prices.csv")).unwrap();
    let listed = || run(at, &["documents", "list"]).0;
    assert!(run(at, &["documents", "add", "drinks"]).2);
    assert!(listed().contains("drinks/tea.md"));
    let (_, reported, well) = run(at, &["documents", "add", "--prune", "drinks"]);
    assert!(well && reported.contains("drinks/tea.md"), "{reported}");
    let list = listed();
    assert!(!list.contains("tea.md") && list.contains("green.md") && list.contains("prices.csv"), "{list}");
    // All that is gone may be on a disk that is not there.
    fs::remove_dir_all(at.join("drinks")).unwrap();
    fs::create_dir(at.join("drinks")).unwrap();
    fs::write(at.join("other.md"), "# Other\n").unwrap();
    assert!(run(at, &["documents", "add", "--prune", "drinks", "other.md"]).2);
    assert!(listed().contains("green.md"));
}

#[test]
fn p6_office_documents_are_read_in_another_process() {
    let folder = folder_with_documents();
    let at = folder.path();
    fs::write(at.join("tea.docx"), include_bytes!("../../../../tools/_documents/tests/data/office/tea.docx"))
        .unwrap();
    fs::write(at.join("bad.docx"), "PK").unwrap();
    let (_, reported, _) = run(at, &["documents", "add", "tea.docx", "bad.docx"]);
    assert!(
        reported.contains("1 added") && reported.contains("cannot add bad.docx: it is damaged"),
        "{reported}"
    );
    let (printed, _, _) = run(at, &["documents", "search", "how hot is green tea"]);
    assert!(
        printed.contains("tea.docx, paragraphs 3-7: Tea > Green") && printed.contains("75 degrees"),
        "{printed}"
    );
}
