package api

import (
	"time"

	"creel/admin"
	"creel/event"
)

func stats(c *call) (any, error) { return c.api.opt.Statistics(c.ctx) }

func signals(c *call) (any, error) {
	all, asOf := c.data().Signals()
	return signalsLine{all, asOf.UTC()}, nil
}

func sources(c *call) (any, error) {
	all, err := c.data().Sources(c.ctx)
	return whole(all, err, lineOfSource)
}

func destinations(c *call) (any, error) {
	all, err := c.data().Destinations(c.ctx)
	return whole(all, err, lineOfDestination)
}

// oneEvent shows an event whole. With eventBody and oneReject it is what shows
// a body.
func oneEvent(c *call) (any, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	detail, err := c.data().Event(c.ctx, key)
	if err != nil {
		return nil, err
	}
	return admin.LineOfDetail(&detail), nil
}

// eventBody is to be kept as a file, whatever its sender says that it is.
func eventBody(c *call) (any, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	body, kind, err := c.data().Body(c.ctx, key)
	if err != nil {
		return nil, err
	}
	return plain{kind: kind, file: true, data: body}, nil
}

func oneDelivery(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	found, err := c.data().Delivery(c.ctx, id)
	if err != nil {
		return nil, err
	}
	return admin.LineOfAttempted(found), nil
}

func oneFailure(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	return c.data().Failure(c.ctx, id)
}

func object(c *call) (any, error) {
	name, err := c.needed("object")
	if err != nil {
		return nil, err
	}
	state, err := c.data().ObjectState(c.ctx, name)
	if err != nil {
		return nil, err
	}
	return admin.LineOfState(state), nil
}

// oneAction is answered with 200 while it runs too: it is there.
func oneAction(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	action, err := c.data().Action(c.ctx, id)
	return &action, err
}

func oneReject(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	return c.data().Reject(c.ctx, id)
}

func verifyReject(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	var at time.Time
	if text := c.typed("at"); text != "" {
		if at, err = event.ParseMoment(text, c.now); err != nil {
			return nil, invalid("", "at: %s", err.Error())
		}
	}
	return c.data().VerifyReject(c.ctx, id, at)
}

func onePlan(c *call) (any, error) {
	plan, err := c.api.opt.Operator.FindPlan(c.params.ByName("id"))
	if err != nil {
		return nil, errNoPlan
	}
	return lineOfPlan(plan), nil
}
