//! Tools that ask the client: by a request of their own in the legacy eras, in their answer since 2026-07-28.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, ErrorData, InputRequiredResult,
    InputResponses, ServerRequest,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::catalogue::shaped;

/// What the client answered to what it was asked for.
pub(crate) struct Answers<'a>(Option<&'a InputResponses>);

impl<'a> Answers<'a> {
    pub(crate) fn new(given: Option<&'a InputResponses>) -> Self {
        Self(given)
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.0?.get(key)
    }

    /// What a user filled in, if an accepted form with that field came back.
    pub(crate) fn elicited(&self, key: &str, field: &str) -> Option<&'a Value> {
        let answer = self.get(key)?;
        let accepted = answer.get("action").and_then(Value::as_str) == Some("accept");
        if accepted { answer.get("content")?.get(field) } else { None }
    }

    fn sampled(&self, key: &str) -> Option<&'a str> {
        let content = self.get(key)?.get("content")?;
        let first = content.get(0).unwrap_or(content);
        first.get("text")?.as_str()
    }
}

/// A form with one field that must be filled in.
pub(crate) fn elicit(message: &str, field: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}})
}

fn sample(prompt: &str, tokens: u32) -> Value {
    let messages = json!([{"role": "user", "content": {"type": "text", "text": prompt}}]);
    json!({"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": tokens}})
}

/// The tools that ask in their answer.
pub(crate) fn in_answer(
    tool: &str,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let answers = Answers::new(request.input_responses.as_ref());
    let state = request.request_state.as_deref();
    match tool {
        "elicitation" => match answers.elicited("user_name", "name").and_then(Value::as_str) {
            Some(name) => said(&format!("Hello, {name}!")),
            None => ask(json!({"user_name": elicit("What is your name?", "name", "string")}), None),
        },
        "sampling" => match answers.sampled("capital_question") {
            Some(text) => said(text),
            None => ask(json!({"capital_question": sample("What is the capital of France?", 100)}), None),
        },
        "list_roots" => match answers.get("client_roots").and_then(|answer| answer.get("roots")) {
            Some(roots) => said(&format!("The roots are {roots}")),
            None => ask(json!({"client_roots": {"method": "roots/list", "params": {}}}), None),
        },
        "request_state" | "tampered_state" => confirmed(&answers, state),
        "multiple_inputs" => several(&answers, state),
        "multi_round" => rounds(&answers, state),
        "capabilities" => able(context),
        unknown => Err(ErrorData::invalid_params(format!("there is no tool {unknown}"), None)),
    }
}

fn confirmed(answers: &Answers<'_>, state: Option<&str>) -> Result<CallToolResponse, ErrorData> {
    check(state, &[CONFIRMING])?;
    match (answers.elicited("confirm", "ok"), state) {
        (Some(_), Some(_)) => said("state-ok"),
        (Some(_) | None, _) => ask(json!({"confirm": elicit("Please confirm", "ok", "boolean")}), Some(CONFIRMING)),
    }
}

fn several(answers: &Answers<'_>, state: Option<&str>) -> Result<CallToolResponse, ErrorData> {
    check(state, &[CONFIRMING])?;
    let name = answers.elicited("user_name", "name");
    let greeting = answers.sampled("greeting");
    let roots = answers.get("client_roots");
    if let (Some(name), Some(greeting), Some(roots)) = (name, greeting, roots) {
        return said(&format!("{greeting} {name} {roots}"));
    }
    let questions = json!({
        "user_name": elicit("What is your name?", "name", "string"),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": {"method": "roots/list", "params": {}},
    });
    ask(questions, Some(CONFIRMING))
}

fn rounds(answers: &Answers<'_>, state: Option<&str>) -> Result<CallToolResponse, ErrorData> {
    check(state, &[FIRST_ROUND, SECOND_ROUND])?;
    let first = answers.elicited("step1", "name");
    let second = answers.elicited("step2", "color");
    match (state, first, second) {
        (Some(SECOND_ROUND), _, Some(color)) => said(&format!("The color is {color}")),
        (Some(SECOND_ROUND), _, None) | (Some(FIRST_ROUND), Some(_), _) => {
            let question = elicit("Step 2: What is your favorite color?", "color", "string");
            ask(json!({"step2": question}), Some(SECOND_ROUND))
        }
        (_, _, _) => ask(json!({"step1": elicit("Step 1: What is your name?", "name", "string")}), Some(FIRST_ROUND)),
    }
}

fn able(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let client = context.client_capabilities().unwrap_or_default();
    let mut questions = serde_json::Map::new();
    if client.elicitation.is_some() {
        questions.insert("user_name".to_owned(), elicit("What is your name?", "name", "string"));
    }
    if client.sampling.is_some() {
        questions.insert("greeting".to_owned(), sample("Generate a greeting", 50));
    }
    if questions.is_empty() { said("The client can give nothing.") } else { ask(Value::Object(questions), None) }
}

/// A state that comes back changed was tampered with; there are so few that each can be known whole.
fn check(state: Option<&str>, known: &[&str]) -> Result<(), ErrorData> {
    match state {
        Some(state) if !known.contains(&state) => {
            Err(ErrorData::invalid_params("the request state is not one that was handed out", None))
        }
        Some(_) | None => Ok(()),
    }
}

/// A tool's result that asks for input.
pub(crate) fn ask(questions: Value, state: Option<&str>) -> Result<CallToolResponse, ErrorData> {
    let mut result = json!({"resultType": "input_required", "inputRequests": questions});
    if let (Some(state), Some(result)) = (state, result.as_object_mut()) {
        result.insert("requestState".to_owned(), state.into());
    }
    let result: InputRequiredResult = shaped(result)?;
    Ok(result.into())
}

/// A tool's result that is one text.
pub(crate) fn said(text: &str) -> Result<CallToolResponse, ErrorData> {
    let result: CallToolResult =
        shaped(json!({"resultType": "complete", "content": [{"type": "text", "text": text}]}))?;
    Ok(result.into())
}

/// The legacy tools that ask by a request of their own.
pub(crate) async fn by_request(
    tool: &str,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let argument = |name: &str| {
        let given = request.arguments.as_ref().and_then(|arguments| arguments.get(name)).and_then(Value::as_str);
        given.ok_or_else(|| ErrorData::invalid_params(format!("the argument {name} is missing"), None))
    };
    let request = match tool {
        "test_sampling" => ServerRequest::CreateMessageRequest(shaped(sample(argument("prompt")?, 100))?),
        "test_elicitation" => {
            let field = |description: &str| json!({"type": "string", "description": description});
            let fields = json!({"username": field("User's response"), "email": field("User's email address")});
            form(argument("message")?, fields, &["username", "email"])?
        }
        "test_elicitation_sep1034_defaults" => form("Please check the defaults", defaults(), &[])?,
        _ => form("Please choose", choices(), &[])?,
    };
    let answer = context.peer.send_request(request).await;
    match answer.map_err(|fault| ErrorData::internal_error(fault.to_string(), None))? {
        ClientResult::CreateMessageResult(result) => {
            let result = json!(result);
            let content = result.get("content").unwrap_or(&Value::Null);
            let text = content.get(0).unwrap_or(content).get("text").and_then(Value::as_str);
            said(&format!("LLM response: {}", text.unwrap_or_default()))
        }
        ClientResult::ElicitResult(result) => {
            let result = json!(result);
            let action = result.get("action").and_then(Value::as_str).unwrap_or_default();
            let content = result.get("content").unwrap_or(&Value::Null);
            said(&format!("Elicitation completed: action={action}, content={content}"))
        }
        ClientResult::ListRootsResult(_) | ClientResult::EmptyResult(_) | ClientResult::CustomResult(_) | _ => {
            Err(ErrorData::internal_error("the client answered something else", None))
        }
    }
}

fn form(message: &str, fields: Value, required: &[&str]) -> Result<ServerRequest, ErrorData> {
    let schema = json!({"type": "object", "properties": fields, "required": required});
    let params = json!({"message": message, "requestedSchema": schema});
    Ok(ServerRequest::ElicitRequest(shaped(json!({"method": "elicitation/create", "params": params}))?))
}

fn defaults() -> Value {
    json!({
        "name": {"type": "string", "description": "A name", "default": "John Doe"},
        "age": {"type": "integer", "description": "An age", "default": 30},
        "score": {"type": "number", "description": "A score", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Whether it is verified", "default": true},
    })
}

fn choices() -> Value {
    let titled = |titles: [&str; 3]| {
        let one = |(number, title): (usize, &str)| json!({"const": format!("value{}", number + 1), "title": title});
        titles.into_iter().enumerate().map(one).collect::<Vec<_>>()
    };
    let options = ["option1", "option2", "option3"];
    json!({
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled(["First Option", "Second Option", "Third Option"])},
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {
            "type": "array", "items": {"anyOf": titled(["First Choice", "Second Choice", "Third Choice"])},
        },
    })
}

const CONFIRMING: &str = "confirming-6f1d";
const FIRST_ROUND: &str = "round-1-b07a";
const SECOND_ROUND: &str = "round-2-c95e";
