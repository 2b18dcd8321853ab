//! The prompts.

use rmcp::ErrorData;
use rmcp::model::{GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequiredResult};
use serde_json::{Value, json};

use crate::asking::{Answers, elicit};
use crate::catalogue::{PNG, shaped};

pub(crate) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let argument = |name: &str| {
        let given = request.arguments.as_ref().and_then(|arguments| arguments.get(name)).and_then(Value::as_str);
        given.ok_or_else(|| ErrorData::invalid_params(format!("the argument {name} is missing"), None))
    };
    let text = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
    let messages = match request.name.as_str() {
        "test_simple_prompt" => json!([text("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1")?, argument("arg2")?);
            json!([text(&format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))])
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": argument("resourceUri")?, "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            });
            let embedded = json!({"role": "user", "content": {"type": "resource", "resource": resource}});
            json!([embedded, text("Please process the embedded resource above.")])
        }
        "test_prompt_with_image" => {
            let image = json!({"role": "user", "content": {"type": "image", "data": PNG, "mimeType": "image/png"}});
            json!([image, text("Please analyze the image above.")])
        }
        "test_input_required_result_prompt" => {
            let answers = Answers::new(request.input_responses.as_ref());
            let Some(context) = answers.elicited("user_context", "context") else {
                let ask = elicit("What context should the prompt use?", "context", "string");
                let asked: InputRequiredResult =
                    shaped(json!({"resultType": "input_required", "inputRequests": {"user_context": ask}}))?;
                return Ok(asked.into());
            };
            json!([text(&format!("Use this context: {context}"))])
        }
        unknown => return Err(ErrorData::invalid_params(format!("there is no prompt {unknown}"), None)),
    };
    let result: GetPromptResult = shaped(json!({"resultType": "complete", "messages": messages}))?;
    Ok(result.into())
}
