package page

import "slices"

// entry is one entry of the menu.
type entry struct {
	Name, Path string
	More       bool // it stands behind "More"
}

// menu is every list of the page, the one that is looked at first in front.
func menu() []entry {
	return []entry{
		{"Dead letters", "/", false},
		{"Overview", "/overview", false},
		{"Events", "/events", false},
		{"Deliveries", "/deliveries", false},
		{"Sources", "/sources", false},
		{"Destinations", "/destinations", false},
		{"Alerts", "/alerts", false},
		{"Audit", "/audit", false},
		{"In doubt", "/doubt", true},
		{"Parked lanes", "/lanes", true},
		{"Duplicates", "/duplicates", true},
		{"Conflicts", "/conflicts", true},
		{"Rejected requests", "/rejects", true},
		{"Records", "/records", true},
		{"Balances", "/balances", true},
		{"Objects", "/objects", true},
		{"API tokens", "/tokens", true},
	}
}

// behind tells whether an entry stands behind "More".
func behind(name string) bool {
	return slices.ContainsFunc(menu(), func(e entry) bool { return e.More && e.Name == name })
}

// views is what can be looked at.
func (p *Page) views() map[string]func(*request) {
	return map[string]func(*request){
		"/":             deadLetters,
		"/overview":     overview,
		"/events":       listEvents,
		"/event":        showEvent,
		"/event/body":   download,
		"/deliveries":   listDeliveries,
		"/doubt":        listDoubt,
		"/sources":      listSources,
		"/destinations": listDestinations,
		"/alerts":       listAlerts,
		"/alerts/:id":   showAlert,
		"/audit":        listActions,
		"/audit/:id":    showAction,
		"/plan/:id":     showPlan,
		"/lanes":        listLanes,
		"/duplicates":   listDuplicates,
		"/conflicts":    listConflicts,
		"/rejects":      listRejects,
		"/rejects/:id":  showReject,
		"/records":      listRecords,
		"/balances":     listBalances,
		"/ledger":       showLedger,
		"/objects":      showObject,
		"/tokens":       listTokens,
	}
}

// deeds is what can be done. None of it answers to GET.
func (p *Page) deeds() map[string]func(*request) {
	return map[string]func(*request){
		"/replay":         replayOne,
		"/plan":           makePlan,
		"/plan/:id":       carryPlan,
		"/decide":         decide,
		"/acknowledge":    acknowledge,
		"/switch":         switchDestination,
		"/skip":           skipLane,
		"/retry":          retryRejects,
		"/tokens":         createToken,
		"/tokens/revoked": revokeToken,
	}
}
