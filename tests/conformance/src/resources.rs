//! The resources.

use rmcp::ErrorData;
use rmcp::model::ReadResourceResult;
use serde_json::json;

use crate::catalogue::{PNG, shaped};

pub(crate) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let template = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let content = match (uri, template) {
        ("test://static-text", _) => json!({
            "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource.",
        }),
        ("test://static-binary", _) => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        ("test://watched-resource", _) => json!({"uri": uri, "mimeType": "text/plain", "text": "Watched."}),
        (_, Some(id)) => {
            let text = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": text.to_string()})
        }
        (_, None) => return Err(ErrorData::resource_not_found("Resource not found", Some(json!({"uri": uri})))),
    };
    shaped(json!({"resultType": "complete", "contents": [content]}))
}
