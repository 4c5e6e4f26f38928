package event

import "time"

// Scope is what a token allows.
type Scope string

// The scopes: to look, and to look and act.
const (
	ScopeRead    Scope = "read"
	ScopeOperate Scope = "operate"
)

// ActionNewPassword is a new password of the page.
const ActionNewPassword ActionKind = "password"

// Token is somebody who may use the API. What he shows is kept as a hash.
type Token struct {
	ID      int64     `json:"id"`
	Name    string    `json:"name"`
	Scope   Scope     `json:"scope"`
	Created time.Time `json:"created_at"`
	Revoked time.Time `json:"revoked_at,omitzero"` // zero while it holds
}
