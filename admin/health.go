package admin

import (
	"encoding/json"
	"net/http"
)

// Check is one condition of readiness. Err is nil while it holds; its text is
// shown to whoever can reach the operator's listener, so it names no secret.
type Check struct {
	Name string
	Err  error
}

// Healthz answers that the process lives.
func Healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte("ok\n"))
}

// Readyz answers 200 while every check holds and 503 with the failing ones
// otherwise.
func Readyz(checks func() []Check) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		report := Report(checks())
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if !report.Ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(report)
	}
}

// Readiness is what Readyz prints.
type Readiness struct {
	Ready  bool              `json:"ready"`
	Checks map[string]string `json:"checks"` // name to "ok" or what is wrong
}

// Report sums checks up.
func Report(checks []Check) Readiness {
	report := Readiness{Ready: true, Checks: map[string]string{}}
	for _, check := range checks {
		report.Checks[check.Name] = "ok"
		if check.Err != nil {
			report.Ready = false
			report.Checks[check.Name] = check.Err.Error()
		}
	}
	return report
}
