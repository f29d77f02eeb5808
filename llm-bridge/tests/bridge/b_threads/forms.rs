//! A form of the answer that leaves no room for calls.

use serde_json::{Value, json};

use super::Thread;
use crate::support::{Answer, Reply, Setup, client_tool, user};

fn form() -> Value {
    let schema = json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]});
    json!({"type": "json_schema", "json_schema": {"name": "sum", "schema": schema}})
}

/// <https://github.com/ollama/ollama/issues/8095>: with a schema for the answer the list of calls is always empty.
#[tokio::test]
async fn b15_the_servers_tools_are_called_before_the_answer_gets_its_form() {
    let _thread = Thread("https://github.com/ollama/ollama/issues/8095");
    for stream in [true, false] {
        let call = Answer::new().call("", "add", &json!({"a": 2, "b": 3}));
        let replies = [call.into(), Reply::text("It is 5."), Reply::text("{\"sum\": 5}")];
        let rack = Setup::new().start_of_kind("ollama", replies).await;
        rack.ask_with(stream, json!({"response_format": form()})).await.expect("{\"sum\": 5}");
        assert_eq!(rack.ran().len(), 1);
        let asked = rack.upstream.asked();
        assert!(
            asked[..2].iter().all(|asked| asked.body.get("format").is_none() && asked.tools().len() == 2)
        );
        assert!(asked[2].body["format"].is_object());
    }
}

/// <https://github.com/ollama/ollama/issues/13750>: the client's own tools are left aside where there is a form, and the model invents
/// what it should have asked for.
#[tokio::test]
async fn b15_a_clients_tools_are_called_before_the_answer_gets_its_form() {
    let _thread = Thread("https://github.com/ollama/ollama/issues/13750");
    for stream in [true, false] {
        let call = Answer::new().call("", "weather", &json!({"city": "Oslo"}));
        let replies = [call.into(), Reply::text("It is grey."), Reply::text("{\"sum\": 5}")];
        let rack = Setup::bare().start_of_kind("ollama", replies).await;
        let fields = json!({"tools": [client_tool("weather")], "response_format": form()});
        let reported = rack.ask_with(stream, fields.clone()).await;
        assert_eq!(reported.named_calls(), [("weather".to_owned(), json!({"city": "Oslo"}))]);
        let asked = rack.upstream.asked();
        assert_eq!((asked[0].body.get("format"), asked[0].tools()), (None, vec!["weather"]));

        let mut fields = fields;
        fields["messages"] = json!([
            user("Go."),
            {"role": "assistant", "content": null, "tool_calls": reported.calls},
            {"role": "tool", "tool_call_id": reported.calls[0]["id"], "content": "grey"},
        ]);
        rack.ask_with(stream, fields).await.expect("{\"sum\": 5}");
        let asked = rack.upstream.asked();
        assert_eq!(asked[1].body.get("format"), None);
        assert!(asked[2].body["format"].is_object());
    }
}
