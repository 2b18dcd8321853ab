//! Our own JSON-RPC messages.

/// An error addressed to the request with this id, or to nobody.
pub(crate) fn error(id: Option<&str>, code: i32, message: &str, data: Option<&str>) -> Vec<u8> {
    let message = serde_json::Value::from(message);
    let id = id.unwrap_or("null");
    let data = data.map(|data| format!(r#","data":{data}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}{data}}}}}"#).into_bytes()
}

/// The answer with which a server ends a subscription.
pub(crate) fn complete(id: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","_meta":{{"{SUBSCRIPTION}":{id}}}}}}}"#)
        .into_bytes()
}

pub(crate) fn cancel(key: u64) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","method":"{CANCELLED}","params":{{"requestId":{key}}}}}"#).into_bytes()
}

pub(crate) const LISTEN: &str = "subscriptions/listen";
pub(crate) const CANCELLED: &str = "notifications/cancelled";
pub(crate) const PROGRESS: &str = "notifications/progress";

pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

pub(crate) const INVALID: i32 = -32600;
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
pub(crate) const INVALID_PARAMS: i32 = -32602;
pub(crate) const INTERNAL: i32 = -32603;
pub(crate) const HEADER_MISMATCH: i32 = -32020;
pub(crate) const MISSING_CAPABILITY: i32 = -32021;
pub(crate) const UNSUPPORTED_VERSION: i32 = -32022;
/// Ours, outside of what the specification keeps for itself.
pub(crate) const CALL_CANCELLED: i32 = -32800;
