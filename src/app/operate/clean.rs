//! The end of what runs of every tenant.

use kit::Tenant;
use sandbox::backend::BackendError;
use sandbox::{Sandbox, TenantStatus};

use crate::admin::words::{Answer, Unended};

/// Ends each sandbox. One that does not end keeps no other from it.
pub(super) async fn clean(sandbox: &Sandbox) -> Result<Answer, BackendError> {
    let (mut ended, mut swept, mut held, mut failed) = (0, sandbox.swept(), Vec::new(), Vec::new());
    for TenantStatus { tenant, live, .. } in sandbox.list().await? {
        match end(sandbox, &tenant, live).await {
            Ok(Was::Live) => ended += 1,
            Ok(Was::HalfStopped) => swept += 1,
            Ok(Was::Held(holder)) => held.push(BackendError::Held { tenant, holder }.to_string()),
            // One that is not provisioned went meanwhile.
            Ok(Was::AtRest) | Err(BackendError::NotProvisioned(_)) => {}
            Err(fault) => {
                let message = format!("{tenant}: {}", kit::chain(&fault));
                failed.push(Unended { why: super::why(&fault), message });
            }
        }
    }
    Ok(Answer::Cleaned { ended, swept, held, failed })
}

/// What a sandbox was before.
enum Was {
    Live,
    /// A stop of it had been cut off.
    HalfStopped,
    /// It lives on, in the hands of this other process.
    Held(String),
    AtRest,
}

async fn end(sandbox: &Sandbox, tenant: &Tenant, live: bool) -> Result<Was, BackendError> {
    if live {
        sandbox.stop(tenant).await?;
        return Ok(Was::Live);
    }
    if sandbox.is_half_stopped(tenant).await? {
        sandbox.stop(tenant).await?;
        return Ok(Was::HalfStopped);
    }
    Ok(sandbox.holder(tenant).await?.map_or(Was::AtRest, Was::Held))
}
