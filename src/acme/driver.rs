//! Asks when it is time, and has what comes of it kept and served.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::order::{self, OrderFault};
use super::transport::Transport;
use super::{Issued, Kept, Settings, schedule};
use crate::edge::redirect::Challenges;
use crate::edge::tls::{Automatic, Identity, IdentityError};
use crate::outbound::Outbound;

/// Has something kept; when it says so, a restart finds it.
pub type Keep = Box<dyn Fn(Kept) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync>;

/// One authority's certificate for one set of names.
pub struct Acme {
    settings: Settings,
    kept: Kept,
    automatic: Automatic,
    challenges: Challenges,
    transport: Transport,
    keep: Keep,
}

#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Order(#[from] OrderFault),
    #[error("the certificate that came cannot be served")]
    Unusable(#[from] IdentityError),
    #[error("the authority took longer than {} minutes", ATTEMPT.as_secs() / 60)]
    Late,
    #[error("a try cannot be kept, and none is made that a restart would forget: {0}")]
    Unkept(String),
}

impl Acme {
    /// Serves what was kept, at once.
    #[must_use]
    pub fn new(
        settings: Settings,
        kept: Kept,
        (automatic, challenges): (Automatic, Challenges),
        outbound: Outbound,
        keep: Keep,
    ) -> Self {
        if let Some(issued) = &kept.issued
            && let Err(fault) = serve(&automatic, issued)
        {
            tracing::error!(fault = kit::chain(&fault), "the ACME certificate that was kept cannot be served");
        }
        automatic.failed(kept.tries);
        Self { settings, kept, automatic, challenges, transport: Transport::new(outbound), keep }
    }

    /// Never ends.
    pub async fn run(mut self) {
        self.kept = self.kept.under(&self.settings);
        loop {
            self.wait().await;
            let domains = self.settings.domains.join(" ");
            match self.attempt().await {
                Ok(()) => tracing::info!(domains, "a certificate has come from the ACME authority"),
                Err(fault) => {
                    let now = kit::clock::since_epoch();
                    if let Fault::Order(fault) = &fault
                        && fault.forgot_us()
                    {
                        self.kept.account = None;
                    }
                    let asked = self.transport.asked().unwrap_or_default().min(LONGEST_ASKED);
                    let least = now + asked.max(self.settings.retry);
                    self.kept.not_before = self.kept.not_before.max(least.as_secs());
                    self.automatic.failed(self.kept.tries);
                    let again = self.kept.not_before().saturating_sub(now).as_secs();
                    let fault = kit::chain(&fault);
                    tracing::warn!(
                        domains,
                        fault,
                        again,
                        "no certificate came from the ACME authority; what there is serves on"
                    );
                    // The pause holds in this process even where it cannot be kept.
                    let _ = (self.keep)(self.kept.clone()).await;
                }
            }
        }
    }

    /// Until it is time. The clock of the day may be set meanwhile, so it is looked at again and again.
    async fn wait(&self) {
        // Without randomness all that is lost is that neighbours ask apart.
        let chance = crate::store::random::<2>().map(u16::from_ne_bytes).unwrap_or_default();
        let issued = self.kept.issued.as_ref().filter(|_| self.kept.is_for(&self.settings));
        let validity = issued.and_then(|_| self.automatic.validity());
        let due = validity.map_or(Duration::ZERO, |(from, until)| schedule::renewal(from, until, chance));
        let due = due.max(self.kept.not_before());
        loop {
            let left = due.saturating_sub(kit::clock::since_epoch());
            if left.is_zero() {
                return;
            }
            sleep(left.min(LOOK)).await;
        }
    }

    async fn attempt(&mut self) -> Result<(), Fault> {
        let chance = crate::store::random::<2>().map(u16::from_ne_bytes).unwrap_or_default();
        self.transport.begin();
        self.kept.tries = self.kept.tries.saturating_add(1);
        let pause = schedule::pause(self.settings.retry, self.kept.tries, chance);
        self.kept.not_before = (kit::clock::since_epoch() + pause).as_secs();
        (self.keep)(self.kept.clone()).await.map_err(Fault::Unkept)?;
        let asked = async {
            let (account, fresh) = order::account(&self.transport, &self.settings, self.kept.account.as_ref()).await?;
            if let Some(fresh) = fresh {
                // Kept before it is used: an account a try is as good as a storm.
                self.kept.account = Some(fresh);
                (self.keep)(self.kept.clone()).await.map_err(Fault::Unkept)?;
            }
            Ok(order::certificate(&account, &self.settings, &self.automatic, &self.challenges).await?)
        };
        let issued: Result<Issued, Fault> = timeout(ATTEMPT, asked).await.map_err(|_late| Fault::Late)?;
        let issued = issued?;
        serve(&self.automatic, &issued)?;
        // One that ends before it is renewed must not be asked for at once and again.
        let earliest = kit::clock::since_epoch() + self.settings.retry;
        self.kept.issued = Some(issued);
        (self.kept.tries, self.kept.not_before) = (0, earliest.as_secs());
        self.automatic.failed(0);
        if let Err(fault) = (self.keep)(self.kept.clone()).await {
            tracing::error!(fault, "the certificate is served, but could not be kept: a restart asks for another");
        }
        Ok(())
    }
}

fn serve(automatic: &Automatic, issued: &Issued) -> Result<(), IdentityError> {
    automatic.issue(Identity::from_pem(issued.chain.as_bytes(), issued.key.expose().as_bytes())?);
    Ok(())
}

/// For a whole order, waiting for the authority included.
const ATTEMPT: Duration = Duration::from_secs(10 * 60);

/// Between two looks at the clock of the day.
const LOOK: Duration = Duration::from_secs(10 * 60);

/// An authority that asks for more is asked again after this all the same, or a slip of its would end the service.
const LONGEST_ASKED: Duration = Duration::from_secs(7 * 24 * 3600);
