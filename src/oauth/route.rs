//! The paths that are answered here, before anyone is authenticated.

use http::Method;

/// What a path is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// RFC 9728, of the origin.
    Resource,
    /// RFC 9728, of the MCP endpoint.
    Endpoint,
    /// RFC 8414, and the same document where OpenID Connect has its own.
    Server,
    Register,
    Authorize,
    Token,
    Revoke,
}

impl Route {
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        Some(match path {
            "/.well-known/oauth-protected-resource" => Self::Resource,
            "/.well-known/oauth-protected-resource/mcp" => Self::Endpoint,
            "/.well-known/oauth-authorization-server"
            | "/.well-known/oauth-authorization-server/mcp"
            | "/.well-known/openid-configuration"
            | "/.well-known/openid-configuration/mcp"
            | "/mcp/.well-known/openid-configuration" => Self::Server,
            REGISTER => Self::Register,
            AUTHORIZE => Self::Authorize,
            TOKEN => Self::Token,
            REVOKE => Self::Revoke,
            _ => return None,
        })
    }

    /// Whether a path is one at which clients look for what logs them in, here or elsewhere. Where it is not served, a
    /// plain 404 tells them so; a demand for a token would not.
    #[must_use]
    pub fn is_discovery(path: &str) -> bool {
        path.starts_with("/.well-known/")
            || path == "/mcp/.well-known/openid-configuration"
            || matches!(path, "/authorize" | "/token" | "/register" | "/oauth")
            || path.starts_with("/oauth/")
    }

    /// Whether pages of any origin may call: what they ask for is public, or proves itself. The page for a person may
    /// not be called by any other.
    #[must_use]
    pub fn is_for_scripts(self) -> bool {
        self != Self::Authorize
    }

    /// Whether it tells of the resource, which is ours whoever lets clients in.
    pub(super) fn is_of_resource(self) -> bool {
        matches!(self, Self::Resource | Self::Endpoint)
    }

    /// What the log and the counters call it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Resource | Self::Endpoint | Self::Server => "(metadata)",
            Self::Register => "(register)",
            Self::Authorize => "(authorize)",
            Self::Token => "(token)",
            Self::Revoke => "(revoke)",
        }
    }

    pub(super) fn allows(self, method: &Method) -> bool {
        match self {
            Self::Resource | Self::Endpoint | Self::Server => matches!(*method, Method::GET | Method::HEAD),
            Self::Authorize => matches!(*method, Method::GET | Method::HEAD | Method::POST),
            Self::Register | Self::Token | Self::Revoke => *method == Method::POST,
        }
    }

    pub(super) fn methods(self) -> &'static str {
        match self {
            Self::Resource | Self::Endpoint | Self::Server => "GET, HEAD",
            Self::Authorize => "GET, HEAD, POST",
            Self::Register | Self::Token | Self::Revoke => "POST",
        }
    }
}

pub(super) const REGISTER: &str = "/oauth/register";
pub(super) const AUTHORIZE: &str = "/oauth/authorize";
pub(super) const TOKEN: &str = "/oauth/token";
pub(super) const REVOKE: &str = "/oauth/revoke";

#[cfg(test)]
mod tests {
    use super::Route;

    #[test]
    fn both_documents_are_where_clients_look_for_them() {
        for (path, route) in [
            ("/.well-known/oauth-protected-resource", Route::Resource),
            ("/.well-known/oauth-protected-resource/mcp", Route::Endpoint),
            ("/.well-known/oauth-authorization-server", Route::Server),
            ("/.well-known/oauth-authorization-server/mcp", Route::Server),
            ("/.well-known/openid-configuration", Route::Server),
            ("/.well-known/openid-configuration/mcp", Route::Server),
            ("/mcp/.well-known/openid-configuration", Route::Server),
        ] {
            assert_eq!(Route::of(path), Some(route), "{path}");
        }
        for other in
            ["/", "/mcp", "/oauth", "/oauth/", "/oauth/token/", "/OAuth/token", "/%6fauth/token", "//oauth/token"]
        {
            assert_eq!(Route::of(other), None, "{other}");
        }
    }
}
