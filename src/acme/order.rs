//! One question, from the account to the certificate.

use std::time::Duration;

use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeType, Error, Identifier, NewAccount, NewOrder, Order,
    OrderStatus, RetryPolicy,
};
use kit::Secret;
use rcgen::{CertificateParams, DistinguishedName, KeyPair};

use super::transport::Transport;
use super::{Issued, Proof, Settings};
use crate::edge::redirect::Challenges;
use crate::edge::tls::{Automatic, IdentityError};

#[derive(Debug, thiserror::Error)]
pub(super) enum OrderFault {
    #[error("the authority refused or did not answer")]
    Authority(#[from] Error),
    #[error("the account that was kept cannot be read")]
    Account(#[source] serde_json::Error),
    #[error("the authority offers no {0} for {1}")]
    NotOffered(&'static str, String),
    #[error("the authority could not see that {name} is ours: {why}")]
    NotProved { name: String, why: String },
    #[error("the order became {0}")]
    Ended(String),
    #[error("a key or a request could not be made")]
    Made(#[from] rcgen::Error),
    #[error("a challenge could not be answered")]
    Answer(#[from] IdentityError),
}

impl OrderFault {
    /// Whether the authority does not know the account any more.
    pub(super) fn forgot_us(&self) -> bool {
        match self {
            Self::Authority(Error::Api(problem)) => {
                problem.r#type.as_deref() == Some("urn:ietf:params:acme:error:accountDoesNotExist")
            }
            Self::Account(_) => true,
            Self::Authority(_)
            | Self::NotOffered(..)
            | Self::NotProved { .. }
            | Self::Ended(_)
            | Self::Made(_)
            | Self::Answer(_) => false,
        }
    }
}

/// The account that was kept, or a new one with what is to be kept of it.
pub(super) async fn account(
    transport: &Transport,
    settings: &Settings,
    kept: Option<&Secret>,
) -> Result<(Account, Option<Secret>), OrderFault> {
    let builder = Account::builder_with_http(Box::new(transport.clone()));
    if let Some(kept) = kept {
        let kept: AccountCredentials = serde_json::from_str(kept.expose()).map_err(OrderFault::Account)?;
        return Ok((builder.from_credentials(kept).await?, None));
    }
    let contact: Vec<_> = settings.contacts.iter().map(String::as_str).collect();
    // An operator has agreed: without that there are no settings.
    let new = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
    let (account, credentials) = builder.create(&new, settings.directory.clone(), None).await?;
    let credentials = serde_json::to_string(&credentials).map_err(OrderFault::Account)?;
    Ok((account, Some(Secret::new(credentials))))
}

/// A certificate for all the names. What was answered for it is withdrawn whatever becomes of it.
pub(super) async fn certificate(
    account: &Account,
    settings: &Settings,
    automatic: &Automatic,
    challenges: &Challenges,
) -> Result<Issued, OrderFault> {
    let identifiers: Vec<_> = settings.domains.iter().cloned().map(Identifier::Dns).collect();
    let mut order = account.new_order(&NewOrder::new(&identifiers)).await?;
    let mut answers = Answers { automatic, challenges, given: Vec::new() };
    let (kind, called) = match settings.proof {
        Proof::TlsAlpn => (ChallengeType::TlsAlpn01, "tls-alpn-01"),
        Proof::Http => (ChallengeType::Http01, "http-01"),
    };
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let name = authorization.identifier().to_string();
        let not_offered = || OrderFault::NotOffered(called, name.clone());
        let mut challenge = authorization.challenge(kind.clone()).ok_or_else(not_offered)?;
        let proof = challenge.key_authorization();
        match settings.proof {
            Proof::TlsAlpn => answers.show(&name, proof.digest().as_ref())?,
            Proof::Http => answers.tell(&challenge.token, proof.as_str()),
        }
        challenge.set_ready().await?;
    }
    let ready = order.poll_ready(&POLLING).await;
    if !matches!(ready, Ok(OrderStatus::Ready)) {
        return Err(why_not(order, ready).await);
    }
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(settings.domains.clone())?;
    params.distinguished_name = DistinguishedName::new();
    order.finalize_csr(params.serialize_request(&key)?.der()).await?;
    let chain = order.poll_certificate(&POLLING).await?;
    let key = crate::pem::of("PRIVATE KEY", key.serialized_der());
    let (directory, domains) = (settings.directory.clone(), settings.domains.clone());
    Ok(Issued { directory, domains, chain, key: Secret::new(key) })
}

/// What the authority says of the first name that it did not take; else how the order ended.
async fn why_not(mut order: Order, ended: Result<OrderStatus, Error>) -> OrderFault {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let name = authorization.identifier().to_string();
        let Ok(state) = authorization.refresh().await else { break };
        let told = state.challenges.iter().find_map(|challenge| challenge.error.as_ref());
        if let Some(problem) = told {
            return OrderFault::NotProved { name, why: problem.to_string() };
        }
    }
    match ended {
        Ok(status) => OrderFault::Ended(format!("{status:?}").to_lowercase()),
        Err(fault) => fault.into(),
    }
}

/// Answers to an authority's questions, withdrawn at their end.
struct Answers<'a> {
    automatic: &'a Automatic,
    challenges: &'a Challenges,
    given: Vec<Given>,
}

enum Given {
    Shown(String),
    Told(String),
}

impl Answers<'_> {
    fn show(&mut self, name: &str, digest: &[u8]) -> Result<(), OrderFault> {
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.custom_extensions = vec![rcgen::CustomExtension::new_acme_identifier(digest)];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        self.automatic.show(name, certificate.der().clone(), key.serialized_der())?;
        self.given.push(Given::Shown(name.to_owned()));
        Ok(())
    }

    fn tell(&mut self, token: &str, answer: &str) {
        self.challenges.answer(token, answer);
        self.given.push(Given::Told(token.to_owned()));
    }
}

impl Drop for Answers<'_> {
    fn drop(&mut self) {
        for given in &self.given {
            match given {
                Given::Shown(name) => self.automatic.withdraw(name),
                Given::Told(token) => self.challenges.forget(token),
            }
        }
    }
}

/// Authorities look within seconds; who says how long is heard within this time.
const POLLING: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_millis(500)).timeout(Duration::from_secs(120));
